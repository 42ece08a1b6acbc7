"""How a process of a `ProcessGroup` lives: it dies with its parent, leaves interrupts to it, and
reports how it failed.
"""

import os
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing import connection, parent_process
from typing import Final

from workers.core.errors import own_error, packed_error
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
    """Leads a session of its own, so that all it starts can be ended with it."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if not die_with_parent(parent):
        _end_session()
    threading.Thread(target=_watch_parent, name="parent", daemon=True).start()


def _watch_parent() -> None:
    """Ends this process, and what it started, when its parent is gone: the kernel's own order
    reaches no grandchild.
    """
    me = parent_process()
    if me is not None:
        connection.wait([me.sentinel])
        _end_session()


def _end_session() -> None:
    os.killpg(os.getpid(), signal.SIGKILL)


def _report(link: connection.Connection, error: BaseException) -> None:
    text = "".join(traceback.format_exception(error))
    try:
        link.send(Failed(packed_error(error), f"{type(error).__name__}: {error}", text))
    except OSError:
        os._exit(FAILED_EXIT)  # nobody listens
