"""The training environment as a `VecEnv` of Stable-Baselines3.

Its seeds and time limits are those of any run; between two steps it advances the engine.
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
    """Steps the environments."""

    def begin(self) -> Array:
        """Begins the episodes that are due and returns the current observations [B, ...].

        They are borrowed until the next step.
        """

    def step(self, actions: Array) -> Experience:
        """Makes one step [1, B, ...]; its arrays are valid until the next one."""


class LoopEnv(VecEnv):
    """Ends the engine's iteration of a step when the algorithm asks for the next step.

    By then the algorithm has learnt from it.

    Where the engine says that training is over, a step changes nothing: `LoopCallback` then ends
    the algorithm's loop, which keeps nothing of that step.

    Args:
        num_envs: B.
        observations: Says what the algorithm sees.
        action_space: Of one environment.
    """

    def __init__(
        self, num_envs: int, observations: Observations, action_space: Space[object]
    ) -> None:
        super().__init__(num_envs, observations.space, action_space)
        self.over = False
        """Whether training is over."""
        self._observations = observations
        self._actions: Array | None = None
        self._stepper: Stepper | None = None
        self._advance: Advance | None = None
        self._stepped = False

    @property
    def attached(self) -> bool:
        """Whether the algorithm's `learn` was ever called."""
        return self._stepper is not None

    def attach(self, stepper: Stepper, advance: Advance) -> None:
        """Gives the environments and the engine for one call of the algorithm's `learn`."""
        self._stepper, self._advance = stepper, advance
        self.over = self._stepped = False

    def reset(self) -> Any:
        """Returns the current observations; running episodes go on."""
        assert self._stepper is not None
        return self._observations(self._stepper.begin())

    def step_async(self, actions: Array) -> None:
        """Keeps the actions."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        """Ends the iteration of the last step, then makes the next one.

        Returns:
            Observation, where an episode ended the first one of the next; reward float32 [B];
                whether an episode ended bool [B]; infos with
            `terminal_observation` and `TimeLimit.truncated` where one did.
        """
        stepper, advance, actions = self._stepper, self._advance, self._actions
        assert stepper is not None
        assert advance is not None
        assert actions is not None
        infos: list[dict[str, object]] = [{} for _ in range(self.num_envs)]
        self.over = self._stepped and not advance()
        if self.over:
            return (
                self.reset(),
                np.zeros(self.num_envs, np.float32),
                np.zeros(self.num_envs, np.bool_),
                infos,
            )
        made = stepper.step(actions)
        self._stepped = True
        ended = made.terminated[0] | made.truncated[0]
        if ended.any():
            self._describe_ends(made, ended, infos)
        return self._observations(stepper.begin()), made.reward[0].astype(np.float32), ended, infos

    def _describe_ends(self, made: Experience, ended: Array, infos: list[dict[str, Any]]) -> None:
        last = self._observations(made.next_observation[0])
        for index in np.flatnonzero(ended).tolist():
            infos[index] = {
                "terminal_observation": self._observations.one_of(last, index),
                "TimeLimit.truncated": not made.terminated[0, index],
            }

    # What else Stable-Baselines3 may ask of environments

    def close(self) -> None:
        """Does nothing: who made the environments closes them."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns `None` for `render_mode`; nothing else is known of the environments."""
        if attr_name != "render_mode":
            raise AttributeError(
                f"{attr_name}: an environment shows the algorithm nothing but its spaces"
            )
        return [None] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, *_: Any, **__: Any) -> None:
        """Raises AttributeError."""
        raise AttributeError(f"{attr_name}: the environments are not the algorithm's to change")

    def env_method(self, method_name: str, *_: object, **__: object) -> list[Any]:
        """Raises AttributeError."""
        raise AttributeError(
            f"{method_name}: an environment offers the algorithm nothing but steps"
        )

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Returns false for each environment."""
        del wrapper_class
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[Any]:
        """Returns no image for each environment."""
        return [None] * self.num_envs


class LoopCallback(BaseCallback):
    """Ends the algorithm's loop once the engine says that training is over.

    After a resume without its replay memory an algorithm acts, but does not learn, until there is
    as much of it as at the first start.

    Args:
        env: What the algorithm steps.
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
        return not self._env.over

    def _refill(self, model: Any) -> None:
        if model.replay_buffer.size() * model.n_envs >= model.learning_starts:
            model.gradient_steps, self._gradient_steps = self._gradient_steps, None
