"""When an evaluation is due, which one runs in the background, and the last result."""

import copy
from typing import NamedTuple

from workers.core.protocols import BackgroundEvaluator, ClockView, Evaluator, Trigger
from workers.core.types import EvaluationResult, StateTree
from workers.engine.clock import StillClock
from workers.engine.triggers import Never


class EvaluatedState(NamedTuple):
    """A state and its evaluation."""

    clock: ClockView
    result: EvaluationResult
    state: StateTree | None
    """A copy of the engine's state, where training has gone on since; it holds no replay memory."""


class EvaluationSchedule:
    """The evaluations of one run. Keeps no order: the engine says when they happen.

    Args:
        evaluator: `None` where nothing is evaluated.
        trigger: When one becomes due.
        during_episode: Whether it may take place before a training episode ends.
    """

    def __init__(
        self, evaluator: Evaluator | None, trigger: Trigger, *, during_episode: bool
    ) -> None:
        self._evaluator = evaluator
        self._trigger = Never() if evaluator is None else trigger
        self._during_episode = during_episode
        self._background = evaluator if isinstance(evaluator, BackgroundEvaluator) else None
        self._running: tuple[ClockView, StateTree] | None = None
        self._pending = False
        self._score: float | None = None
        self._at: tuple[int, int] | None = None

    @property
    def next_exact(self) -> int:
        """env_steps at which the next one takes place exactly.

        A very large number where it does not matter.
        """
        return self._trigger.next if self._during_episode else Never.next

    @property
    def in_background(self) -> bool:
        """Whether evaluations run beside training."""
        return self._background is not None

    @property
    def score(self) -> float | None:
        """Mean return of the last one."""
        return self._score

    @property
    def quiet_until(self) -> int:
        """env_steps below which there is nothing to see to.

        0 where there is something already, or may be at any time.
        """
        return 0 if self._pending or self._running is not None else self._trigger.quiet_until

    def request(self) -> None:
        """Makes one due."""
        self._pending = self._evaluator is not None

    def is_due_or_running(self, clock: ClockView) -> bool:
        """Returns whether an evaluation is due or one runs in the background.

        One that is due may have to wait.
        """
        if self._trigger.due(clock):
            self._pending = True
        return self._pending or self._running is not None

    def due(self, *, episode_ended: bool) -> bool:
        """Returns whether one is to take place now; one that may not yet stays due."""
        return self._pending and (self._during_episode or episode_ended)

    def evaluate(self, clock: ClockView) -> EvaluatedState | None:
        """Evaluates the present state; `None` where there is no evaluator."""
        if self._evaluator is None:
            return None
        self._pending = False
        return self._evaluated(clock, self._evaluator.evaluate(clock), None)

    def begin(self, state: StateTree) -> None:
        """Begins the evaluation of the present state beside training.

        Args:
            state: The engine's, without the replay memory; copied.
        """
        assert self._background is not None
        self._pending = False
        self._running = (StillClock.of(state), copy.deepcopy(state))
        self._background.begin(self._running[0])

    def finished(self, *, wait: bool) -> EvaluatedState | None:
        """Returns what was begun once its result is there.

        `None` before, or where nothing was begun.
        """
        if self._running is None or self._background is None:
            return None
        result = self._background.finished(wait=wait)
        if result is None:
            return None
        clock, state = self._running
        self._running = None
        return self._evaluated(clock, result, state)

    def give_up(self) -> None:
        """Forgets what was begun."""
        self._running = None

    def score_of(self, clock: ClockView) -> float | None:
        """Returns the mean return of the present state; `None` where it was not evaluated."""
        return self._score if self.has_evaluated(clock) else None

    def has_evaluated(self, clock: ClockView) -> bool:
        """Returns whether the present state was evaluated."""
        return self._at == (clock.env_steps, clock.updates)

    def state_dict(self) -> StateTree:
        """Returns what a resume needs to evaluate at the same places."""
        return {
            "trigger": self._trigger.state_dict(),
            "pending": self._pending,
            "score": self._score,
            "at": None if self._at is None else list(self._at),
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Takes it over."""
        self._trigger.load_state_dict(state["trigger"])
        self._pending = state["pending"]
        self._score = state["score"]
        self._at = None if state["at"] is None else (state["at"][0], state["at"][1])

    def _evaluated(
        self, clock: ClockView, result: EvaluationResult, state: StateTree | None
    ) -> EvaluatedState:
        self._score = result.mean
        self._at = (clock.env_steps, clock.updates)
        return EvaluatedState(clock, result, state)
