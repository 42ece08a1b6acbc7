"""Tracks when an evaluation is due, the one in the background, and the last result."""

import copy
from typing import NamedTuple

from workers.core.protocols import BackgroundEvaluator, ClockView, Evaluator, Trigger
from workers.core.types import EvaluationResult, StateTree
from workers.engine.clock import StillClock
from workers.engine.triggers import NeverTrigger


class EvaluatedState(NamedTuple):
    """The result of an evaluation, with the clock and state that were evaluated."""

    clock: ClockView
    result: EvaluationResult
    state: StateTree | None
    """For a background evaluation, a copy of the engine's state without the replay memory."""


class EvaluationSchedule:
    """Tracks the evaluations of one run; the engine calls it at each boundary.

    Args:
        evaluator: `None` for a run without evaluations.
        trigger: Fires when an evaluation becomes due.
        evaluates_during_episode: Whether a due evaluation may run before a training episode ends.
    """

    def __init__(
        self, evaluator: Evaluator | None, trigger: Trigger, *, evaluates_during_episode: bool
    ) -> None:
        self._evaluator = evaluator
        self._trigger = NeverTrigger() if evaluator is None else trigger
        self._evaluates_during_episode = evaluates_during_episode
        self._background = evaluator if isinstance(evaluator, BackgroundEvaluator) else None
        self._running: tuple[ClockView, StateTree] | None = None
        self._is_pending = False
        self._score: float | None = None
        self._at: tuple[int, int] | None = None

    @property
    def next_exact(self) -> int:
        """The number of env_steps at which the next evaluation must run exactly.

        A very large number if evaluations wait for the end of an episode.
        """
        return self._trigger.next if self._evaluates_during_episode else NeverTrigger.next

    @property
    def is_in_background(self) -> bool:
        """Whether evaluations run in the background of training."""
        return self._background is not None

    @property
    def score(self) -> float | None:
        """Mean return of the last evaluation; `None` before the first."""
        return self._score

    @property
    def quiet_until(self) -> int:
        """The number of env_steps before which no evaluation is due or running.

        0 if one is due or running now, or may become due at any time.
        """
        return 0 if self._is_pending or self._running is not None else self._trigger.quiet_until

    def request(self) -> None:
        """Makes an evaluation due."""
        self._is_pending = self._evaluator is not None

    def is_due_or_running(self, clock: ClockView) -> bool:
        """Returns whether an evaluation is due or one runs in the background.

        A due evaluation may have to wait for the end of an episode, see `is_due_now`.
        """
        if self._trigger.take_due(clock):
            self._is_pending = True
        return self._is_pending or self._running is not None

    def is_due_now(self, *, has_episode_ended: bool) -> bool:
        """Returns whether an evaluation is due and may run now."""
        return self._is_pending and (self._evaluates_during_episode or has_episode_ended)

    def evaluate(self, clock: ClockView) -> EvaluatedState | None:
        """Evaluates the current state; `None` without an evaluator."""
        if self._evaluator is None:
            return None
        self._is_pending = False
        return self._evaluated_state(clock, self._evaluator.evaluate(clock), None)

    def begin(self, state: StateTree) -> None:
        """Starts an evaluation of the current state in the background.

        Args:
            state: The engine's state without the replay memory; copied.
        """
        assert self._background is not None
        self._is_pending = False
        self._running = (StillClock.from_state(state), copy.deepcopy(state))
        self._background.begin(self._running[0])

    def take_result(self, *, wait: bool) -> EvaluatedState | None:
        """Returns the background evaluation once its result is available.

        `None` before that, or if none was started.
        """
        if self._running is None or self._background is None:
            return None
        result = self._background.take_result(wait=wait)
        if result is None:
            return None
        clock, state = self._running
        self._running = None
        return self._evaluated_state(clock, result, state)

    def discard_background(self) -> None:
        """Discards the background evaluation; its result will not be returned."""
        self._running = None

    def score_of(self, clock: ClockView) -> float | None:
        """Returns the mean return of the current state; `None` if it was not evaluated."""
        return self._score if self.has_evaluated(clock) else None

    def has_evaluated(self, clock: ClockView) -> bool:
        """Returns whether the current state was evaluated."""
        return self._at == (clock.env_steps, clock.updates)

    def state_dict(self) -> StateTree:
        """Returns the state from which a resumed run evaluates at the same env_steps."""
        return {
            "trigger": self._trigger.state_dict(),
            "pending": self._is_pending,
            "score": self._score,
            "at": None if self._at is None else list(self._at),
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the schedule from `state`."""
        self._trigger.load_state_dict(state["trigger"])
        self._is_pending = state["pending"]
        self._score = state["score"]
        self._at = None if state["at"] is None else (state["at"][0], state["at"][1])

    def _evaluated_state(
        self, clock: ClockView, result: EvaluationResult, state: StateTree | None
    ) -> EvaluatedState:
        self._score = result.mean
        self._at = (clock.env_steps, clock.updates)
        return EvaluatedState(clock, result, state)
