"""A hook that changes the agent's learning rate with the env_steps of the training."""

from collections.abc import Sequence

from workers.core.protocols import EngineView
from workers.core.types import LearnReport


class LearningRateHook:
    """Changes the learning rate linearly from `start` to `final`, then keeps it at `final`.

    The hook has no state, since the value depends on the clock alone.

    Args:
        start: Learning rate at env_step 0.
        final: Learning rate from `env_steps` on.
        env_steps: Length of the schedule.
    """

    def __init__(self, start: float, final: float, env_steps: int) -> None:
        self._start = start
        self._final = final
        self._env_steps = env_steps

    def on_start(self, view: EngineView) -> None:
        """Sets the learning rate at the beginning and after a resume."""
        view.agent.learning_rate = self._value(view.clock.env_steps)

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Sets the learning rate for the next update."""
        del reports
        view.agent.learning_rate = self._value(view.clock.env_steps)

    def _value(self, env_steps: int) -> float:
        fraction = min(1.0, env_steps / self._env_steps)
        return self._start + (self._final - self._start) * fraction
