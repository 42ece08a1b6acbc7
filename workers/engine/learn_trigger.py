"""Determines how many updates are due."""

from collections.abc import Sequence

from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, LearnSchedule, StateTree
from workers.engine.triggers import IntervalTrigger


class LearnTrigger:
    """Counts the updates that are due by an agent's learn schedule.

    Args:
        schedule: The agent's learn schedule.
    """

    def __init__(self, schedule: LearnSchedule) -> None:
        self.per_multiple = schedule.updates
        self._trigger = IntervalTrigger(schedule.every_env_steps)
        self.next = self._trigger.next
        """env_steps of the next multiple; read at every step."""
        self._warmup_end = schedule.warmup_env_steps
        self._at_episode_end = schedule.learns_at_episode_end

    def take_due(self, clock: ClockView, episodes: Sequence[EpisodeEnd]) -> int:
        """Returns the number of updates that became due since the last call.

        Args:
            clock: The engine's clock. Before `next`, updates are due only at the end of an episode.
            episodes: The episodes that ended since the last call.
        """
        crossed = self._trigger.take_due(clock) or int(self._at_episode_end and bool(episodes))
        self.next = self._trigger.next
        return crossed * self.per_multiple if crossed and clock.env_steps >= self._warmup_end else 0

    def warm_up_again(self, clock: ClockView) -> None:
        """Restarts the warm-up at the current env_step, because the memory is empty."""
        self._warmup_end += clock.env_steps

    def state_dict(self) -> StateTree:
        """Returns the next multiple and the end of the warm-up."""
        return {**self._trigger.state_dict(), "warmup_end": self._warmup_end}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the next multiple and the end of the warm-up."""
        self._trigger.load_state_dict(state)
        self.next = self._trigger.next
        self._warmup_end = int(state["warmup_end"])
