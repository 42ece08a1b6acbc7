"""The training environment as a `VecEnv` of Stable-Baselines3.

Seeds and time limits are the same as for other agents. Between two steps it advances the engine.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import Space
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from workers.core.protocols import Advance
from workers.core.types import Array, Experience
from workers.rl.agents.sb3.observations import Observations


class Stepper(Protocol):
    """The interface with which an algorithm's loop steps the training environments."""

    def begin(self) -> Array:
        """Begins new episodes where one has ended; returns the current observations [B, ...].

        The observations are valid until the next step.
        """

    def step(self, actions: Array) -> Experience:
        """Makes one vector step [1, B, ...], whose arrays are valid until the next step."""


class LoopEnv(VecEnv):
    """Environments that end the engine's iteration of a step when the next step is requested.

    By then the algorithm has learnt from the step.

    Once the engine has ended training, a step does not change the environments: `LoopCallback` then
    ends the algorithm's loop, which does not store that step.

    Args:
        num_envs: Number of environments, B.
        observations: Converts observations for the algorithm.
        action_space: Action space of one environment.
    """

    def __init__(
        self, num_envs: int, observations: Observations, action_space: Space[object]
    ) -> None:
        super().__init__(num_envs, observations.space, action_space)
        self.is_over = False
        """Whether the engine has ended training."""
        self._observations = observations
        self._actions: Array | None = None
        self._stepper: Stepper | None = None
        self._advance: Advance | None = None
        self._has_stepped = False

    @property
    def has_learned(self) -> bool:
        """Whether the algorithm's `learn` was ever called."""
        return self._stepper is not None

    def attach(self, stepper: Stepper, advance: Advance) -> None:
        """Sets the environments and the engine's callback for one call of the algorithm's `learn`.

        Args:
            stepper: Steps the environments.
            advance: Ends the engine's iteration; returns whether training continues.
        """
        self._stepper, self._advance = stepper, advance
        self.is_over = self._has_stepped = False

    def reset(self) -> Any:
        """Returns the current observations; episodes in progress are not reset."""
        assert self._stepper is not None
        return self._observations(self._stepper.begin())

    def step_async(self, actions: Array) -> None:
        """Stores the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        """Ends the engine's iteration of the previous step, then makes the next step.

        Returns:
            Observations, for ended episodes the first one of the next episode; rewards float32 [B];
                mask bool [B] of ended episodes; infos, for ended episodes with
                `terminal_observation` and `TimeLimit.truncated`.
        """
        stepper, advance, actions = self._stepper, self._advance, self._actions
        assert stepper is not None
        assert advance is not None
        assert actions is not None
        infos: list[dict[str, object]] = [{} for _ in range(self.num_envs)]
        self.is_over = self._has_stepped and not advance()
        if self.is_over:
            return (
                self.reset(),
                np.zeros(self.num_envs, np.float32),
                np.zeros(self.num_envs, np.bool_),
                infos,
            )
        made = stepper.step(actions)
        self._has_stepped = True
        ended = made.terminated[0] | made.truncated[0]
        if ended.any():
            self._describe_ends(made, ended, infos)
        return self._observations(stepper.begin()), made.reward[0].astype(np.float32), ended, infos

    def _describe_ends(self, made: Experience, ended: Array, infos: list[dict[str, Any]]) -> None:
        last = self._observations(made.next_observation[0])
        for index in np.flatnonzero(ended).tolist():
            infos[index] = {
                "terminal_observation": self._observations.observation_at(last, index),
                "TimeLimit.truncated": not made.terminated[0, index],
            }

    # Further methods of `VecEnv`

    def close(self) -> None:
        """Does nothing: the environments are closed by the code that created them."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns `None` for `render_mode`; raises AttributeError for other attributes."""
        if attr_name != "render_mode":
            raise AttributeError(
                f"{attr_name}: an algorithm can read only the spaces of an environment"
            )
        return [None] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, *_: Any, **__: Any) -> None:
        """Raises AttributeError: an algorithm must not change environments."""
        raise AttributeError(f"{attr_name}: an algorithm cannot set attributes of an environment")

    def env_method(self, method_name: str, *_: object, **__: object) -> list[Any]:
        """Raises AttributeError: an algorithm can only step environments."""
        raise AttributeError(f"{method_name}: an algorithm can only step an environment")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Returns false for each environment: wrappers are not visible to the algorithm."""
        del wrapper_class
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[Any]:
        """Returns `None` for each environment: there is no rendering."""
        return [None] * self.num_envs


class LoopCallback(BaseCallback):
    """Ends the algorithm's loop once the engine has ended training.

    After a resume without its replay memory an algorithm acts without learning until the memory
    holds `learning_starts` transitions, as at the first start.

    Args:
        env: The environments that the algorithm steps.
    """

    def __init__(self, env: LoopEnv) -> None:
        super().__init__()
        self._env = env
        self._gradient_steps: int | None = None

    def _on_training_start(self) -> None:
        model: Any = self.model
        buffer = getattr(model, "replay_buffer", None)
        if buffer is not None and model.num_timesteps and not buffer.size():
            self._gradient_steps, model.gradient_steps = model.gradient_steps, 0

    def _on_step(self) -> bool:
        if self._gradient_steps is not None:
            self._refill(self.model)
        return not self._env.is_over

    def _refill(self, model: Any) -> None:
        if model.replay_buffer.size() * model.n_envs >= model.learning_starts:
            model.gradient_steps, self._gradient_steps = self._gradient_steps, None
