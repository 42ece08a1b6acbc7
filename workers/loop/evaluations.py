"""When an evaluation is due, and what the last one said of which state."""

from workers.core.protocols import ClockView, Evaluator, Trigger
from workers.core.types import EvaluationResult, StateTree
from workers.loop.triggers import Never


class Evaluations:
    """The evaluations of one run. Keeps no order: the engine says when they happen.

    Args:
        evaluator: `None` where nothing is evaluated.
        trigger: When one becomes due.
        during_episode: Whether it may take place before a training episode ends.
    """

    def __init__(self, evaluator: Evaluator | None, trigger: Trigger, *, during_episode: bool) -> None:
        self._evaluator = evaluator
        self._trigger = Never() if evaluator is None else trigger
        self._during_episode = during_episode
        self._pending = False
        self._score: float | None = None
        self._at: tuple[int, int] | None = None

    @property
    def next_exact(self) -> int:
        """env_steps at which the next one takes place exactly; a very large number where it does not matter."""
        return self._trigger.next if self._during_episode else Never.next

    @property
    def score(self) -> float | None:
        """Mean return of the last one."""
        return self._score

    def request(self) -> None:
        """Makes one due."""
        self._pending = self._evaluator is not None

    def due(self, clock: ClockView, *, episode_ended: bool) -> bool:
        """Returns whether one is to take place now; one that may not yet stays due."""
        if self._trigger.due(clock):
            self._pending = True
        return self._pending and (self._during_episode or episode_ended)

    def evaluate(self, clock: ClockView) -> EvaluationResult | None:
        """Evaluates the present state; `None` where there is no evaluator."""
        if self._evaluator is None:
            return None
        self._pending = False
        result = self._evaluator.evaluate(clock)
        self._score = result.mean
        self._at = (clock.env_steps, clock.updates)
        return result

    def score_of(self, clock: ClockView) -> float | None:
        """Returns the mean return of the present state; `None` where it was not evaluated."""
        return self._score if self.knows(clock) else None

    def knows(self, clock: ClockView) -> bool:
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
