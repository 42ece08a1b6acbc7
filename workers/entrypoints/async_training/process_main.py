"""Main function of a process of a `ProcessGroup`.

The process is killed when its parent ends, ignores SIGINT, which the parent handles, and sends its
exception to the parent.
"""

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Final

from workers.core.errors import pickle_error, unwrapped_error
from workers.core.subprocess_pool import watch_parent
from workers.entrypoints.async_training.process_group import DoneMessage, FailureMessage
from workers.ipc.process_tree import die_with_parent

FAILED_EXIT: Final = 1


def run(
    parent: int,
    index: int,
    link: connection.Connection,
    body: Callable[[int, connection.Connection], None],
) -> None:
    """Runs `body` in a started process, and sends an exception to the parent.

    Args:
        parent: Process ID of the parent.
        index: Index of this process in its group.
        link: Connection to the parent; closed at the end.
        body: Called as `body(index, link)`.

    Raises:
        SystemExit: With status 1, if `body` raised.
    """
    _start_session(parent)
    status = 0
    try:
        body(index, link)
        link.send(DoneMessage())
    except BaseException as error:  # noqa: BLE001 - the parent decides
        status = FAILED_EXIT
        _report(link, unwrapped_error(error))
    link.close()
    if status:
        raise SystemExit(status)


def _start_session(parent: int) -> None:
    """Starts a new session, so that it can be killed as a whole, and sets the signal handlers."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if not die_with_parent(parent):
        _end_session()
    # The kernel's parent-death signal reaches this process only, not the processes it started.
    watch_parent(_end_session)


def _end_session() -> None:
    os.killpg(os.getpid(), signal.SIGKILL)


def _report(link: connection.Connection, error: BaseException) -> None:
    text = "".join(traceback.format_exception(error))
    try:
        link.send(FailureMessage(pickle_error(error), f"{type(error).__name__}: {error}", text))
    except OSError:
        # The parent has closed the connection, so no message can be sent.
        os._exit(FAILED_EXIT)
