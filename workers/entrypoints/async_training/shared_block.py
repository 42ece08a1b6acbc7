"""Memory that several processes share: words behind a lock, and counts that need none.

All of it lies in memory without a name, so that nothing is left behind however the processes end.
The lock is one that the kernel releases when its holder dies: a killed process never blocks the
others. Needs Linux.
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
    """Indices of words in the block; those of single processes follow.

    Plain numbers: reading a member of an enumeration costs 0.2 µs at every step.
    """

    BOUND_REACHED: Final = 0
    ENDING: Final = 1
    WRITER: Final = 2
    BEST: Final = 3
    FIRST_PROCESS: Final = 4


class StopCause(IntEnum):
    """Why the processes stop."""

    RUNNING = 0
    """False as a condition; all others are true."""
    BUDGET = 1
    SUCCESS = 2
    REQUESTED = 3
    ABORTED = 4
    """The writer saves what an error, a lost process or an event from outside left."""
    ABANDONED = 5
    """Nobody saves."""


class SharedBlock:
    """Words of 8 bytes that several processes see, a lock, and the counts of the run.

    It travels to a process that is being started; one that was forked opens it again with `opened`,
    or it would share its parent's lock.

    Args:
        processes: How many train; each has a word of its own.
    """

    def __init__(self, processes: int) -> None:
        descriptor = os.memfd_create("palestra-async", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, _WORD * (Slot.FIRST_PROCESS + processes))
        self._attach(descriptor, SharedCount(), SharedCount(), SharedCount())
        self.reals[Slot.BEST] = math.nan

    @property
    def processes(self) -> int:
        """How many processes train."""
        return len(self.integers) - Slot.FIRST_PROCESS

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock for the body; not to be entered twice by one process."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def opened(self) -> "SharedBlock":
        """Returns the same block with a lock of its own.

        The two locks exclude each other, within one process too.
        """
        again = SharedBlock.__new__(SharedBlock)
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        # A second self.
        again._attach(descriptor, self.env_steps, self.episodes, self.updates)  # noqa: SLF001
        return again

    def close(self) -> None:
        """Unmaps the memory in this process; other processes keep their mapping."""
        self.integers.release()
        self.reals.release()
        self._map.close()
        self._close_descriptor()

    def __reduce__(self) -> tuple[Callable[..., "SharedBlock"], tuple[object, ...]]:
        return _received, (DupFd(self._descriptor), self.env_steps, self.episodes, self.updates)

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


def _received(duplicate: Any, *counts: SharedCount) -> SharedBlock:
    block = SharedBlock.__new__(SharedBlock)
    block._attach(duplicate.detach(), *counts)  # noqa: SLF001 - the constructor of a copy
    reopened = block.opened()
    block.close()
    return reopened
