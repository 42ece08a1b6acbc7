"""What the engines of several processes share: the count of env_steps, the best score, the budget, and who ends the run.

All of it lies in memory without a name, so that nothing is left behind however the processes end. Counts need no lock: see
`SharedCount`. The lock of the rest is one that the kernel releases when its holder dies: a killed process never blocks the others.
Needs Linux.
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

from workers.core.protocols import ClockView, TimeSource
from workers.core.types import StateTree, Unit
from workers.loop.budget import UNLIMITED
from workers.loop.clock import Clock
from workers.loop.parts import Best

_WORD: Final = 8
_seek, _FROM_HERE = os.lseek, os.SEEK_CUR


class Slot:
    """Places in the block; those of single processes follow. Plain numbers: a member of an enumeration costs 0.2 µs, at every step."""

    BOUND_REACHED: Final = 0
    ENDING: Final = 1
    WRITER: Final = 2
    BEST: Final = 3
    FIRST_PROCESS: Final = 4


class Ending(IntEnum):
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


class SharedCount:
    """A number that several processes add to, at least 0.

    It is the offset of a file without a name, which `lseek` moves in one indivisible step: half a microsecond, where a lock around a word
    of memory costs four. POSIX asks that of regular files (2.9.7), and Linux keeps it for those that were opened: the descriptor that
    `memfd_create` returns was not, and loses counts. It travels to processes that are forked or being started.
    """

    def __init__(self) -> None:
        created = os.memfd_create("palestra-count", os.MFD_CLOEXEC)
        try:
            self._attach(os.open(f"/proc/self/fd/{created}", os.O_RDWR | os.O_CLOEXEC))
        finally:
            os.close(created)

    @property
    def value(self) -> int:
        """The sum of all that was added."""
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)

    @value.setter
    def value(self, value: int) -> None:
        os.lseek(self._descriptor, value, os.SEEK_SET)

    def add(self, amount: int) -> int:
        """Adds, and returns the sum: no two calls of any processes return the same where something is added."""
        return _seek(self._descriptor, amount, _FROM_HERE)

    def __reduce__(self) -> tuple[Callable[[Any], "SharedCount"], tuple[Any]]:
        return _received_count, (DupFd(self._descriptor),)

    def _attach(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)


class SharedBlock:
    """Words of 8 bytes that several processes see, a lock, and the counts of the run.

    It travels to a process that is being started; one that was forked opens it again with `opened`, or it would share its parent's lock.

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
        """Returns the same block, opened again: its lock excludes this one's, also within one process."""
        again = SharedBlock.__new__(SharedBlock)
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        again._attach(descriptor, self.env_steps, self.episodes, self.updates)  # noqa: SLF001 - a second self
        return again

    def close(self) -> None:
        """Lets go of the memory; what others have of it stays."""
        self.integers.release()
        self.reals.release()
        self._map.close()
        self._close_descriptor()

    def __reduce__(self) -> tuple[Callable[..., "SharedBlock"], tuple[Any, ...]]:
        return _received, (DupFd(self._descriptor), self.env_steps, self.episodes, self.updates)

    def _attach(self, descriptor: int, env_steps: SharedCount, episodes: SharedCount, updates: SharedCount) -> None:
        self.env_steps, self.episodes, self.updates = env_steps, episodes, updates
        self._descriptor = descriptor
        self._close_descriptor = weakref.finalize(self, os.close, descriptor)
        self._map = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.integers = memoryview(self._map).cast("q")
        """Signed words; reading one needs no lock."""
        self.reals = memoryview(self._map).cast("d")
        """The same words as float64."""


def _received_count(duplicate: Any) -> SharedCount:
    count = SharedCount.__new__(SharedCount)
    count._attach(duplicate.detach())  # noqa: SLF001 - the constructor of a copy
    return count


def _received(duplicate: Any, *counts: SharedCount) -> SharedBlock:
    block = SharedBlock.__new__(SharedBlock)
    block._attach(duplicate.detach(), *counts)  # noqa: SLF001 - the constructor of a copy
    reopened = block.opened()
    block.close()
    return reopened


class SharedClock(Clock):
    """A clock whose count of env_steps, episodes and updates is that of all processes together.

    What it shows is what this process claimed last, so every env_step is shown by exactly one process. Iterations and epochs are the
    process's own.

    Args:
        time: Monotonic seconds.
        block: Opened by this process.
        bound: Whoever claims the env_step of this number tells all that the bound is reached.
    """

    __slots__ = ("_block", "_bound", "_claim", "_updates", "claimed")

    def __init__(self, time: TimeSource, block: SharedBlock, bound: int) -> None:
        self._block = block
        self._bound = bound
        self._claim = block.env_steps.add
        self._updates = 0
        self.claimed = 0
        """env_steps of the last count: those in (env_steps - claimed, env_steps] are this process's."""
        super().__init__(time)
        self.catch_up()

    @property
    def updates(self) -> int:
        """Updates of all processes, as of this one's last."""
        return self._updates

    @updates.setter
    def updates(self, value: int) -> None:
        made = value - self._updates
        if made > 0:
            self._updates = self._block.updates.add(made)

    def count(self, env_steps: int, episodes: int) -> None:
        """Claims the next env_steps and episodes."""
        self.env_steps = at = self._claim(env_steps)
        self.claimed = env_steps
        if at >= self._bound:
            self._block.integers[Slot.BOUND_REACHED] = 1
        if episodes:
            self.episodes = self._block.episodes.add(episodes)

    def catch_up(self) -> None:
        """Shows the counts of all processes as they are now."""
        block = self._block
        self.env_steps, self.episodes, self._updates = block.env_steps.value, block.episodes.value, block.updates.value

    def begin(self) -> None:
        """Counts the seconds of training from now on: that processes wait for one another before is none of it."""
        self._started = self._time()

    def totals(self) -> StateTree:
        """Returns a `state_dict` with the counts of all processes as they are now."""
        block = self._block
        shared = {"env_steps": block.env_steps.value, "episodes": block.episodes.value, "updates": block.updates.value}
        return {**self.state_dict(), **shared}

    def load_state_dict(self, state: StateTree) -> None:
        """Sets the shared counts, too: for the time before training, where every process loads the same."""
        self._updates = int(state["updates"])
        super().load_state_dict(state)
        self.claimed = 0
        block = self._block
        block.env_steps.value, block.episodes.value, block.updates.value = self.env_steps, self.episodes, self._updates


class SharedEvery:
    """Fires for each multiple of `interval` in exactly one process: the one that claimed the env_step of that number.

    Needs no memory of what fired: every env_step belongs to one process.

    Args:
        interval: In env_steps.
        clock: This process's.
        below: Multiples from here on do not count; a final evaluation has them.
    """

    def __init__(self, interval: int, clock: SharedClock, below: int) -> None:
        if interval < 1:
            raise ValueError(f"an interval must be at least 1, not {interval}")
        self._interval = interval
        self._clock = clock
        self._below = below
        self._asked_at = -1

    @property
    def next(self) -> int:
        """The first multiple above what this process claimed last."""
        following = (self._clock.env_steps // self._interval + 1) * self._interval
        return following if following < self._below else UNLIMITED

    @property
    def quiet_until(self) -> int:
        """The same."""
        return self.next

    def due(self, clock: ClockView) -> int:
        """Returns the number of multiples among the env_steps that this process claimed last; 0 where it asked before."""
        at = clock.env_steps
        if at == self._asked_at:
            return 0
        self._asked_at = at
        interval, last = self._interval, min(at, self._below - 1)
        return max(0, last // interval - (at - self._clock.claimed) // interval)

    def state_dict(self) -> StateTree:
        """Returns nothing: the clock says it all."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Takes nothing over."""


class SharedBest(Best):
    """The best score of all processes.

    Args:
        block: Opened by this process.
    """

    def __init__(self, block: SharedBlock) -> None:
        self._block = block

    @property
    def score(self) -> float | None:
        """The best mean return so far; `None` before the first."""
        value = float(self._block.reals[Slot.BEST])
        return None if math.isnan(value) else value

    @score.setter
    def score(self, value: float | None) -> None:
        self._block.reals[Slot.BEST] = math.nan if value is None else value

    def improved(self, score: float) -> bool:
        """Takes a score over if it strictly exceeds that of every process."""
        with self._block.locked():
            return super().improved(score)


class EndOfRun:
    """Which process ends the run, and why. The first that claims it writes the last snapshot; the others only stop.

    Args:
        block: Opened by this process.
        index: This process's.
    """

    def __init__(self, block: SharedBlock, index: int) -> None:
        self._block = block
        self._words = block.integers
        self.index: Final = index

    @property
    def ending(self) -> Ending:
        """Why the run is over, if it is."""
        return Ending(self._words[Slot.ENDING])

    @property
    def in_sight(self) -> bool:
        """Whether the bound is reached or some process ends the run."""
        words = self._words
        return bool(words[Slot.BOUND_REACHED] or words[Slot.ENDING])

    @property
    def over(self) -> bool:
        """Whether some process ends the run."""
        return bool(self._words[Slot.ENDING])

    @property
    def mine(self) -> bool:
        """Whether this process is the one that writes the last snapshot."""
        words = self._words
        return bool(words[Slot.ENDING] not in (Ending.RUNNING, Ending.ABANDONED) and words[Slot.WRITER] == self.index)

    @property
    def aborted(self) -> bool:
        """Whether an error or an order from outside ends the run."""
        return bool(self._words[Slot.ENDING] >= Ending.ABORTED)

    def claim(self, ending: Ending) -> bool:
        """Ends the run, unless another process or another reason did before; returns whether this claim holds."""
        with self._block.locked():
            words = self._words
            if words[Slot.ENDING] == Ending.RUNNING:
                words[Slot.WRITER] = self.index
                words[Slot.ENDING] = ending
            return bool(words[Slot.ENDING] == ending and words[Slot.WRITER] == self.index)

    def abort(self, writer: int | None) -> None:
        """Ends the run whatever was claimed before.

        Args:
            writer: Process that saves what there is; `None` for none.
        """
        with self._block.locked():
            words = self._words
            if words[Slot.ENDING] < Ending.ABORTED:
                words[Slot.WRITER] = -1 if writer is None else writer
                words[Slot.ENDING] = Ending.ABANDONED if writer is None else Ending.ABORTED

    def stopped_stepping(self) -> None:
        """Says that this process makes no further env_step."""
        self._words[Slot.FIRST_PROCESS + self.index] = 1

    def alone(self) -> bool:
        """Returns whether all other processes have said so."""
        first = Slot.FIRST_PROCESS
        return all(self._words[at] for at in range(first, len(self._words)) if at != first + self.index)


class SharedBudget:
    """Bounds the count of all processes. The process with the index 0 ends the run; the others see it and stop.

    At most one env_step per other process is made beyond the bound: those that were under way.

    Args:
        env_steps: Final count.
        clock: This process's, which knows the same bound.
        block: Opened by this process.
        end: This process's.
    """

    quiet_until: Final = UNLIMITED
    """The engine's control is asked at each step already, and asks `exhausted`."""

    def __init__(self, env_steps: int, clock: SharedClock, block: SharedBlock, end: EndOfRun) -> None:
        self._env_steps = env_steps
        self._clock = clock
        self._count = block.env_steps
        self._words = block.integers
        self._end = end

    @property
    def reached(self) -> bool:
        """Whether the bound is reached."""
        return self._words[Slot.BOUND_REACHED] == 1 or self._clock.env_steps >= self._env_steps

    def exhausted(self, clock: ClockView) -> bool:
        """Returns whether the bound is reached and this process is the one to end the run."""
        del clock
        return self.reached and self._end.index == 0 and self._end.claim(Ending.BUDGET)

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how many env_steps are left for all processes."""
        del clock
        return max(0, self._env_steps - self._count.value) if unit is Unit.ENV_STEPS else UNLIMITED
