"""Memory that several processes share: words protected by a lock, and atomic counts.

The memory is anonymous (`memfd_create`), so that the kernel frees it however the processes end. The
lock is a `flock`, which the kernel releases when its holder ends: a killed process never blocks the
others. Linux only.
"""

import fcntl
import math
import mmap
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from multiprocessing.reduction import DupFd
from typing import Any, Final

from workers.core.shared_counter import SharedCount

_WORD: Final = 8


class Slot:
    """Indices of words in the block; from `FIRST_PROCESS` on there is one word per process.

    The indices are plain integers, because reading a member of an enumeration costs 0.2 µs at every
    step.
    """

    BOUND_REACHED: Final = 0
    ENDING: Final = 1
    WRITER: Final = 2
    BEST: Final = 3
    FIRST_PROCESS: Final = 4


class StopCause(IntEnum):
    """The cause of the end of a run."""

    RUNNING = 0
    """The run has not ended. The only member that is falsy."""
    BUDGET = 1
    SUCCESS = 2
    REQUESTED = 3
    ABORTED = 4
    """Ended by an error, a lost process, an event or a signal; the writer saves a snapshot."""
    ABANDONED = 5
    """Ended like `ABORTED`, but no process is left that could save a snapshot."""


class SharedBlock:
    """Shared words of 8 bytes, a lock, and the shared counts of the run.

    Can be pickled for a process that is being started. A forked process must call `reopen`:
    otherwise it and its parent would hold the same lock, which would not exclude them.

    Args:
        processes: Number of training processes; the block has one word for each.
    """

    def __init__(self, processes: int) -> None:
        descriptor = os.memfd_create("palestra-async", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, _WORD * (Slot.FIRST_PROCESS + processes))
        self._attach(descriptor, SharedCount(), SharedCount(), SharedCount())
        self.reals[Slot.BEST] = math.nan

    @property
    def processes(self) -> int:
        """Number of training processes."""
        return len(self.integers) - Slot.FIRST_PROCESS

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Holds the lock during the body. Not reentrant."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def reopen(self) -> "SharedBlock":
        """Returns another object for the same memory, with a file descriptor of its own.

        The locks of the two objects exclude each other, also within one process.
        """
        again = SharedBlock.__new__(SharedBlock)
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        # A private method of another instance of the same class.
        again._attach(descriptor, self.env_steps, self.episodes, self.updates)  # noqa: SLF001
        return again

    def close(self) -> None:
        """Unmaps the memory in this process; other processes keep their mapping."""
        self.integers.release()
        self.reals.release()
        self._map.close()
        self._close_descriptor()

    def __reduce__(self) -> tuple[Callable[..., "SharedBlock"], tuple[object, ...]]:
        return _rebuild, (DupFd(self._descriptor), self.env_steps, self.episodes, self.updates)

    def _attach(
        self, descriptor: int, env_steps: SharedCount, episodes: SharedCount, updates: SharedCount
    ) -> None:
        self.env_steps, self.episodes, self.updates = env_steps, episodes, updates
        self._descriptor = descriptor
        self._close_descriptor = weakref.finalize(self, os.close, descriptor)
        self._map = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.integers = memoryview(self._map).cast("q")
        """Signed words; reading one needs no lock."""
        self.reals = memoryview(self._map).cast("d")
        """The same words as float64."""


def _rebuild(duplicate: Any, *counts: SharedCount) -> SharedBlock:
    block = SharedBlock.__new__(SharedBlock)
    block._attach(duplicate.detach(), *counts)  # noqa: SLF001 - the constructor of a copy
    reopened = block.reopen()
    block.close()
    return reopened
