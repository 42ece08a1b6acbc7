"""Engine parts whose state is shared by several processes.

These are the clock, the best score, the budget, and which process ends the run. Their state is
stored in a `SharedBlock`.
"""

import math
from typing import Final

from workers.core.protocols import ClockView, TimeSource
from workers.core.types import StateTree, Unit
from workers.engine.budget import UNLIMITED
from workers.engine.clock import Clock
from workers.engine.parts import BestScore
from workers.entrypoints.async_training.shared_block import SharedBlock, Slot, StopCause


class SharedClock(Clock):
    """A clock whose env_steps, episodes and updates are summed over all processes.

    `env_steps` is the shared count right after this process added to it, so that each number of an
    env_step belongs to exactly one process. Iterations and epochs are counted per process.

    Args:
        time: Returns monotonic seconds.
        block: The shared block, opened by this process.
        bound: The process whose env_step reaches this count sets `Slot.BOUND_REACHED`.
    """

    __slots__ = ("_block", "_bound", "_claim", "_updates", "claimed")

    def __init__(self, time: TimeSource, block: SharedBlock, bound: int) -> None:
        self._block = block
        self._bound = bound
        self._claim = block.env_steps.add
        self._updates = 0
        self.claimed = 0
        """Number of env_steps that this process added last: the env_steps in
        (env_steps - claimed, env_steps] belong to it.
        """
        super().__init__(time)
        self.catch_up()

    @property
    def updates(self) -> int:
        """Updates of all processes, as counted when this process last added one."""
        return self._updates

    @updates.setter
    def updates(self, value: int) -> None:
        made = value - self._updates
        if made > 0:
            self._updates = self._block.updates.add(made)

    def count(self, env_steps: int, episodes: int) -> None:
        """Adds to the shared counts of env_steps and episodes."""
        self.env_steps = at = self._claim(env_steps)
        self.claimed = env_steps
        if at >= self._bound:
            self._block.integers[Slot.BOUND_REACHED] = 1
        if episodes:
            self.episodes = self._block.episodes.add(episodes)

    def catch_up(self) -> None:
        """Reads the current shared counts into this clock."""
        block = self._block
        self.env_steps, self.episodes, self._updates = (
            block.env_steps.value,
            block.episodes.value,
            block.updates.value,
        )

    def begin(self) -> None:
        """Restarts the measurement of wall seconds.

        It excludes the time in which the processes wait for one another to start.
        """
        self._started = self._time()

    def totals(self) -> StateTree:
        """Returns a `state_dict` with the current shared counts."""
        block = self._block
        shared = {
            "env_steps": block.env_steps.value,
            "episodes": block.episodes.value,
            "updates": block.updates.value,
        }
        return {**self.state_dict(), **shared}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the clock and the shared counts.

        Called before training begins; every process loads the same counts.
        """
        self._updates = int(state["updates"])
        super().load_state_dict(state)
        self.claimed = 0
        block = self._block
        block.env_steps.value, block.episodes.value, block.updates.value = (
            self.env_steps,
            self.episodes,
            self._updates,
        )


class SharedIntervalTrigger:
    """Fires for each multiple of `interval`, in the process to which that env_step belongs.

    Has no state to save: every env_step belongs to exactly one process, so each multiple fires
    once.

    Args:
        interval: Interval in env_steps.
        clock: Clock of this process.
        below: Multiples from this env_step on do not fire, because the final evaluation covers
            them.
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
        """The first multiple after the clock's env_steps; `UNLIMITED` if none is below `below`."""
        following = (self._clock.env_steps // self._interval + 1) * self._interval
        return following if following < self._below else UNLIMITED

    @property
    def quiet_until(self) -> int:
        """The same as `next`."""
        return self.next

    def take_due(self, clock: ClockView) -> int:
        """Returns the number of multiples among the env_steps that this process added last.

        Returns 0 when called again at the same env_step.
        """
        at = clock.env_steps
        if at == self._asked_at:
            return 0
        self._asked_at = at
        interval, last = self._interval, min(at, self._below - 1)
        return max(0, last // interval - (at - self._clock.claimed) // interval)

    def state_dict(self) -> StateTree:
        """Returns an empty dictionary: the next multiple follows from the clock."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing; see `state_dict`."""


class SharedBestScore(BestScore):
    """The best score of all processes, in shared memory.

    Args:
        block: The shared block, opened by this process.
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

    def store_if_better(self, score: float) -> bool:
        """Sets the best score if `score` strictly exceeds it, and returns whether it did."""
        with self._block.hold_lock():
            return super().store_if_better(score)


class EndOfRun:
    """The process that ends the run, and the cause.

    The first process that calls `claim` writes the last snapshot; the others only stop.

    Args:
        block: The shared block, opened by this process.
        index: Index of this process.
    """

    def __init__(self, block: SharedBlock, index: int) -> None:
        self._block = block
        self._words = block.integers
        self.index: Final = index

    @property
    def ending(self) -> StopCause:
        """Why the run has ended; `StopCause.RUNNING` if it has not."""
        return StopCause(self._words[Slot.ENDING])

    @property
    def is_imminent(self) -> bool:
        """Whether the bound is reached or a process has ended the run."""
        words = self._words
        return bool(words[Slot.BOUND_REACHED] or words[Slot.ENDING])

    @property
    def is_over(self) -> bool:
        """Whether a process has ended the run."""
        return bool(self._words[Slot.ENDING])

    @property
    def writes_last_snapshot(self) -> bool:
        """Whether the run has ended and this process writes the last snapshot."""
        words = self._words
        return bool(
            words[Slot.ENDING] not in (StopCause.RUNNING, StopCause.ABANDONED)
            and words[Slot.WRITER] == self.index
        )

    @property
    def is_aborted(self) -> bool:
        """Whether an error, a signal or the exception event ended the run."""
        return bool(self._words[Slot.ENDING] >= StopCause.ABORTED)

    def claim(self, ending: StopCause) -> bool:
        """Ends the run, if it has not ended yet, with this process as the writer.

        Returns whether the run has ended for the reason `ending` with this process as the writer.
        """
        with self._block.hold_lock():
            words = self._words
            if words[Slot.ENDING] == StopCause.RUNNING:
                words[Slot.WRITER] = self.index
                words[Slot.ENDING] = ending
            return bool(words[Slot.ENDING] == ending and words[Slot.WRITER] == self.index)

    def abort(self, writer: int | None) -> None:
        """Aborts the run, and replaces an earlier claim.

        Args:
            writer: Index of the process that writes the last snapshot; `None` if no process can.
        """
        with self._block.hold_lock():
            words = self._words
            if words[Slot.ENDING] < StopCause.ABORTED:
                words[Slot.WRITER] = -1 if writer is None else writer
                words[Slot.ENDING] = StopCause.ABANDONED if writer is None else StopCause.ABORTED

    def mark_stopped(self) -> None:
        """Sets this process's word, which means that it makes no further env_step."""
        self._words[Slot.FIRST_PROCESS + self.index] = 1

    def have_others_stopped(self) -> bool:
        """Returns whether all other processes have called `mark_stopped`."""
        first = Slot.FIRST_PROCESS
        return all(
            self._words[at] for at in range(first, len(self._words)) if at != first + self.index
        )


class SharedBudget:
    """Limits the env_steps of all processes together.

    The process with index 0 ends the run; the others read that the bound is reached and stop. Each
    other process makes at most one env_step beyond the bound, the one that it has already begun.

    Args:
        env_steps: Number of env_steps, summed over the processes, at which training ends.
        clock: Clock of this process, with the same bound.
        block: The shared block, opened by this process.
        end: Shared state of the run's end, seen by this process.
    """

    quiet_until: Final = UNLIMITED
    """The engine need not check this budget: its control calls `is_exhausted` at each step."""

    def __init__(
        self, env_steps: int, clock: SharedClock, block: SharedBlock, end: EndOfRun
    ) -> None:
        self._env_steps = env_steps
        self._clock = clock
        self._count = block.env_steps
        self._words = block.integers
        self._end = end

    @property
    def is_reached(self) -> bool:
        """Whether all processes together have made the env_steps of the budget."""
        return self._words[Slot.BOUND_REACHED] == 1 or self._clock.env_steps >= self._env_steps

    def is_exhausted(self, clock: ClockView) -> bool:
        """Ends the run if the bound is reached and this is process 0; returns whether it did."""
        del clock
        return self.is_reached and self._end.index == 0 and self._end.claim(StopCause.BUDGET)

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how many env_steps are left for all processes together."""
        del clock
        return max(0, self._env_steps - self._count.value) if unit is Unit.ENV_STEPS else UNLIMITED
