"""Step hooks: callables `(env, agent, step)` that a training function calls once per env_step.

The names are those of `pfrl.experiments`. `set_learning_rate` sets the `lr` of parameter groups,
which torch optimisers read.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from workers.core.errors import NumericalFailureError
from workers.core.protocols import EngineView, Stateful
from workers.core.types import LearnReport, StateTree
from workers.rl.networks.torch_optimizers import optimizers_of

StepCallable = Callable[[Any, Any, int], object]
"""Type of a step hook: `(env, agent, step)`; the result is ignored."""


class StepHook(ABC):
    """Interface of a step hook.

    Every callable with these parameters is a step hook; inheriting from this class is optional.

    If a hook has `state_dict` and `load_state_dict`, snapshots contain its state.
    """

    @abstractmethod
    def __call__(self, env: object, agent: object, step: int) -> None:
        """Called after the agent observed an env_step.

        Args:
            env: The training environment that the caller passed to the training function.
            agent: The agent that the caller passed to the training function.
            step: env_steps so far; the first call gets the step offset + 1.
        """


class LinearInterpolationHook(StepHook):
    """Sets a value that changes linearly from `start_value` to `stop_value`, then stays there.

    The value is `start_value` at step 1 and `stop_value` from step `total_steps` on.

    Args:
        total_steps: Last step of the interpolation in env_steps, at least 1.
        start_value: Value at step 1.
        stop_value: Value from `total_steps` on.
        setter: Called as `(env, agent, value)` at every step, for example `set_learning_rate`.
    """

    def __init__(
        self,
        total_steps: int,
        start_value: float,
        stop_value: float,
        setter: Callable[[Any, Any, float], object],
    ) -> None:
        if total_steps < 1:
            raise ValueError(f"total_steps must be at least 1, not {total_steps}")
        self.total_steps = total_steps
        self.start_value = start_value
        self.stop_value = stop_value
        self.setter = setter

    def __call__(self, env: object, agent: object, step: int) -> None:
        """Calls the setter with the value of this step."""
        self.setter(env, agent, self.value(step))

    def value(self, step: int) -> float:
        """Returns the value at a step."""
        if step >= self.total_steps:
            return float(self.stop_value)
        fraction = max(0, step - 1) / max(1, self.total_steps - 1)
        return self.start_value + (self.stop_value - self.start_value) * fraction


class FiniteStatisticsHook(StepHook):
    """Ends training as diverged if a statistic of the agent is infinite or becomes NaN.

    NaN is ignored in statistics that were never finite: averages are NaN before their first value.

    Args:
        every: env_steps between two checks.
        names: Names of the statistics to check; `None` for all.

    Raises:
        ValueError: If `every` is less than 1.
    """

    def __init__(self, every: int = 1_000, names: Sequence[str] | None = None) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, not {every}")
        self._every = every
        self._names = None if names is None else frozenset(names)
        self._numbers: set[str] = set()

    def __call__(self, env: Any, agent: Any, step: int) -> None:
        """Checks the statistics at each multiple of `every`.

        Raises:
            NumericalFailureError: If training diverged; the `except` snapshot is written then.
        """
        del env
        if step % self._every:
            return
        for name, value in agent.get_statistics():
            if self._names is None or name in self._names:
                self._check_statistic(name, value, step)

    def state_dict(self) -> StateTree:
        """Returns the names of the statistics that were finite before."""
        return {"numbers": sorted(self._numbers)}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the names of the statistics that were finite before."""
        self._numbers = set(state["numbers"])

    def _check_statistic(self, name: str, value: object, step: int) -> None:
        if not isinstance(value, int | float):
            return
        if math.isfinite(value):
            self._numbers.add(name)
            return
        if math.isinf(value) or name in self._numbers:
            raise NumericalFailureError(
                f"the statistic {name} is {value} at step {step}: training diverged, "
                "lower the learning rate"
            )


def set_learning_rate(env: object, agent: object, value: float) -> None:
    """Sets the learning rate of all parameter groups of the torch optimisers of the agent.

    Raises:
        TypeError: If none of the agent's attributes is a torch optimiser.
    """
    del env
    _set(list(optimizers_of(agent)), type(agent).__name__, value)


def learning_rate_setter(*attributes: str) -> Callable[[object, object, float], None]:
    """Returns a setter like `set_learning_rate` for the named optimisers of the agent.

    Args:
        attributes: Names of the attributes that hold the optimisers, such as `actor_optimizer`.
    """

    def setter(env: object, agent: object, value: float) -> None:
        del env
        for name in attributes:
            own = getattr(agent, name)
            _set(
                [own if hasattr(own, "param_groups") else own.optimizer],
                f"{type(agent).__name__}.{name}",
                value,
            )

    return setter


def check_step_hooks(hooks: Sequence[object], parameter: str) -> None:
    """Raises TypeError if a step hook is not callable; the message contains `parameter`."""
    for hook in hooks:
        if not callable(hook):
            raise TypeError(
                f"{parameter}: a {type(hook).__name__} cannot be called as hook(env, agent, step)"
            )


class StepHooks:
    """A hook of the engine that calls step hooks once for each env_step of an iteration.

    Args:
        env: Passed to the step hooks.
        agent: Passed to the step hooks.
        hooks: Step hooks, called in this order for each step.
        num_envs: env_steps per iteration.

    Raises:
        TypeError: If a step hook is not callable.
    """

    def __init__(
        self, env: object, agent: object, hooks: Sequence[StepCallable], num_envs: int
    ) -> None:
        check_step_hooks(hooks, "step_hooks")
        self._env = env
        self._agent = agent
        self._hooks: tuple[Any, ...] = tuple(hooks)
        self._num_envs = num_envs

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Calls all step hooks for each env_step of the iteration that has just ended."""
        del reports
        if not self._hooks:
            return
        last = view.clock.env_steps
        if self._num_envs == 1:
            for hook in self._hooks:
                hook(self._env, self._agent, last)
            return
        for step in range(last - self._num_envs + 1, last + 1):
            for hook in self._hooks:
                hook(self._env, self._agent, step)

    def state_dict(self) -> StateTree:
        """Returns the state of each hook that has one."""
        return {
            "hooks": [
                hook.state_dict() if isinstance(hook, Stateful) else None for hook in self._hooks
            ]
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the hooks' states; if the number of hooks differs, none is restored."""
        states = state["hooks"] if len(state["hooks"]) == len(self._hooks) else ()
        for hook, own in zip(self._hooks, states, strict=False):
            if own is not None and isinstance(hook, Stateful):
                hook.load_state_dict(own)


def _set(optimizers: Sequence[Any], owner: str, value: float) -> None:
    if not optimizers:
        raise TypeError(
            f"{owner} has no torch optimiser among its attributes: write a setter of your own"
        )
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = value
