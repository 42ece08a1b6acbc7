"""The state that the engines of several processes share.

It is the count of env_steps, the best score, the budget, and which process ends the run.

It lies in a `SharedBlock`, whose counts need no lock.
"""

import math
from typing import Final

from workers.core.protocols import ClockView, TimeSource
from workers.core.types import StateTree, Unit
from workers.engine.budget import UNLIMITED
from workers.engine.clock import Clock
from workers.engine.parts import Best
from workers.entrypoints.async_training.shared_block import SharedBlock, Slot, StopCause


class SharedClock(Clock):
    """A clock whose count of env_steps, episodes and updates is that of all processes together.

    Its env_steps are those that this process claimed last, so that each env_step belongs to one
    process. Iterations and epochs are the process's own.

    Args:
        time: Monotonic seconds.
        block: Opened by this process.
        bound: The process that claims this env_step marks the bound as reached for all.
    """

    __slots__ = ("_block", "_bound", "_claim", "_updates", "claimed")

    def __init__(self, time: TimeSource, block: SharedBlock, bound: int) -> None:
        self._block = block
        self._bound = bound
        self._claim = block.env_steps.add
        self._updates = 0
        self.claimed = 0
        """env_steps of the last count: those in (env_steps - claimed, env_steps] are this
        process's.
        """
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
        """Sets the counts to those of all processes."""
        block = self._block
        self.env_steps, self.episodes, self._updates = (
            block.env_steps.value,
            block.episodes.value,
            block.updates.value,
        )

    def begin(self) -> None:
        """Counts the seconds of training from now on.

        The time before, in which the processes wait for one another, does not count.
        """
        self._started = self._time()

    def totals(self) -> StateTree:
        """Returns a `state_dict` with the counts of all processes as they are now."""
        block = self._block
        shared = {
            "env_steps": block.env_steps.value,
            "episodes": block.episodes.value,
            "updates": block.updates.value,
        }
        return {**self.state_dict(), **shared}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the clock and the shared counts.

        Called before the training, where every process loads the same state.
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


class SharedEvery:
    """Fires for each multiple of `interval`, in the process that claimed this env_step.

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
        """The same as `next`."""
        return self.next

    def due(self, clock: ClockView) -> int:
        """Returns the number of multiples among the env_steps that this process claimed last.

        0 where it asked before.
        """
        at = clock.env_steps
        if at == self._asked_at:
            return 0
        self._asked_at = at
        interval, last = self._interval, min(at, self._below - 1)
        return max(0, last // interval - (at - self._clock.claimed) // interval)

    def state_dict(self) -> StateTree:
        """Returns nothing: the next multiple follows from the clock."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores nothing."""


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
        """Sets the best score if `score` strictly exceeds it, and returns whether it did."""
        with self._block.locked():
            return super().improved(score)


class EndOfRun:
    """Which process ends the run, and why.

    The first that claims it writes the last snapshot; the others only stop.

    Args:
        block: Opened by this process.
        index: This process's.
    """

    def __init__(self, block: SharedBlock, index: int) -> None:
        self._block = block
        self._words = block.integers
        self.index: Final = index

    @property
    def ending(self) -> StopCause:
        """Why the run is over, if it is."""
        return StopCause(self._words[Slot.ENDING])

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
        return bool(
            words[Slot.ENDING] not in (StopCause.RUNNING, StopCause.ABANDONED)
            and words[Slot.WRITER] == self.index
        )

    @property
    def aborted(self) -> bool:
        """Whether an error or an order from outside ends the run."""
        return bool(self._words[Slot.ENDING] >= StopCause.ABORTED)

    def claim(self, ending: StopCause) -> bool:
        """Ends the run, unless another process or another reason did before.

        Returns whether this claim holds.
        """
        with self._block.locked():
            words = self._words
            if words[Slot.ENDING] == StopCause.RUNNING:
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
            if words[Slot.ENDING] < StopCause.ABORTED:
                words[Slot.WRITER] = -1 if writer is None else writer
                words[Slot.ENDING] = StopCause.ABANDONED if writer is None else StopCause.ABORTED

    def stopped_stepping(self) -> None:
        """Marks that this process makes no further env_step."""
        self._words[Slot.FIRST_PROCESS + self.index] = 1

    def alone(self) -> bool:
        """Returns whether all other processes have called `stopped_stepping`."""
        first = Slot.FIRST_PROCESS
        return all(
            self._words[at] for at in range(first, len(self._words)) if at != first + self.index
        )


class SharedBudget:
    """Bounds the count of all processes.

    The process with the index 0 ends the run; the others see it and stop.

    At most one env_step per other process is made beyond the bound: those that were under way.

    Args:
        env_steps: Final count.
        clock: This process's, which knows the same bound.
        block: Opened by this process.
        end: This process's.
    """

    quiet_until: Final = UNLIMITED
    """The engine's control is asked at each step already, and asks `exhausted`."""

    def __init__(
        self, env_steps: int, clock: SharedClock, block: SharedBlock, end: EndOfRun
    ) -> None:
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
        return self.reached and self._end.index == 0 and self._end.claim(StopCause.BUDGET)

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how many env_steps are left for all processes."""
        del clock
        return max(0, self._env_steps - self._count.value) if unit is Unit.ENV_STEPS else UNLIMITED
