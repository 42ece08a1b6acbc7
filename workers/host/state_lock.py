"""The lock with which one worker reserves its state directory.

Processes that the worker forks do not hold it.

A lock of `flock` belongs to the open file description, which forked processes inherit, so it would
persist while any of them runs. Therefore a forked process closes the descriptor first, and ends
with the worker. The next worker kills processes that still hold the lock of an ended worker.
"""

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Final

from workers.host.options import BusyError, UsageError
from workers.ipc.json_log import get_logger
from workers.ipc.process_tree import die_with_parent, kill_lock_inheritors

PATIENCE_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = 0.2


class StateLock:
    """The exclusive lock of this process on a state directory.

    Args:
        directory: The worker's directory; created if it is missing.
        patience_seconds: How long a worker that still holds the lock may take to end.

    Raises:
        BusyError: If another worker holds the lock.
        UsageError: If the directory is not writable.
    """

    def __init__(self, directory: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._path = directory / "worker.lock"
        self._owner = os.getpid()
        self._descriptor = _open(self._path)
        self._take(patience_seconds)
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def release(self) -> None:
        """Releases the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self, patience_seconds: float) -> None:
        deadline = time.monotonic() + patience_seconds
        while not _is_locked_now(self._descriptor):
            for identity in kill_lock_inheritors(self._path):
                get_logger().warning("worker.ended_leftover", pid=identity.pid)
            if time.monotonic() > deadline:
                pid = os.pread(self._descriptor, 32, 0).decode() or "unknown"
                self.release()
                raise BusyError(
                    f"the state directory {self._path.parent} is used by the worker with pid "
                    f"{pid}: stop it first"
                )
            time.sleep(_PAUSE_SECONDS)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(self._owner).encode(), 0)

    def _leave_to_parent(self) -> None:
        """Closes the lock in a forked process, and makes the process end with the worker.

        It is called in every forked process, right after the fork.
        """
        if self._descriptor < 0:
            return
        self.release()
        if not die_with_parent(self._owner):
            os.kill(os.getpid(), signal.SIGKILL)


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(
            f"cannot write to the state directory {path.parent}: {error.strerror}"
        ) from None


def _is_locked_now(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
