"""Main function of a process of a `ProcessGroup`.

It ends with its parent, ignores SIGINT, which the parent handles, and reports its failure.
"""

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Final

from workers.core.errors import own_error, packed_error
from workers.core.subprocess_pool import watch_parent
from workers.entrypoints.async_training.process_group import Done, Failed
from workers.ipc.process_tree import die_with_parent

FAILED_EXIT: Final = 1


def run(
    parent: int,
    index: int,
    link: connection.Connection,
    body: Callable[[int, connection.Connection], None],
) -> None:
    """Runs the body of a started process to its end, and reports an exception to the parent.

    Args:
        parent: Its pid.
        index: Of this process.
        link: Closed at the end.
        body: Given the last two.
    """
    _settle_in(parent)
    status = 0
    try:
        body(index, link)
        link.send(Done())
    except BaseException as error:  # noqa: BLE001 - the parent decides
        status = FAILED_EXIT
        _report(link, own_error(error))
    link.close()
    if status:
        raise SystemExit(status)


def _settle_in(parent: int) -> None:
    """Makes the process the leader of a session, which can be killed as a whole."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if not die_with_parent(parent):
        _end_session()
    # The signal that the kernel sends to this process does not reach what this process started.
    watch_parent(_end_session)


def _end_session() -> None:
    os.killpg(os.getpid(), signal.SIGKILL)


def _report(link: connection.Connection, error: BaseException) -> None:
    text = "".join(traceback.format_exception(error))
    try:
        link.send(Failed(packed_error(error), f"{type(error).__name__}: {error}", text))
    except OSError:
        os._exit(FAILED_EXIT)  # nobody listens
