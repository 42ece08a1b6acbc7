"""Plays one episode of an evaluation again, with the camera on.

Owns an environment made to be rendered. The episode begins from the seed that the evaluation gave it, so it is the one that was counted.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from workers.core.errors import DefinitionError
from workers.core.protocols import Agent
from workers.core.rng import preserved_global_state
from workers.core.types import Array
from workers.evaluate.evaluator import Told

_DEFAULT_FPS = 30.0


class Film:
    """Films episodes.

    Args:
        env: Made with `render_mode="rgb_array"`; owned.
        agent: Acts without exploring.

    Raises:
        DefinitionError: If the environment renders no pictures.
    """

    def __init__(self, env: gym.Env[Any, Any], agent: Agent) -> None:
        if env.render_mode != "rgb_array":
            env.close()
            raise DefinitionError("the environment cannot be filmed: it has no render mode rgb_array; leave the hook video out")
        self._env = env
        self._agent = agent
        self._told: Told | None = getattr(agent, "observe_evaluation", None)
        self._discrete = isinstance(env.action_space, gym.spaces.Discrete)

    @property
    def fps(self) -> float:
        """Frames per second by the environment's own word, else 30."""
        return float(self._env.metadata.get("render_fps") or _DEFAULT_FPS)

    def frames(self, seed: int, most: int) -> Iterator[Array]:
        """Yields the pictures of one episode, uint8 [height, width, 3], from its reset to its end, at most `most` of them."""
        with preserved_global_state(), self._agent.eval_mode():
            observation, _ = self._env.reset(seed=seed)
            for left in range(most - 2, -1, -1):
                yield self._picture()
                action = self._agent.act(np.asarray(observation)[None], explore=False)[0]
                observation, reward, terminated, truncated, _ = self._env.step(int(action) if self._discrete else action)
                over = bool(terminated or truncated)
                self._tell(observation, float(reward), bool(terminated), reset=over or not left)
                if over:
                    break
            yield self._picture()

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    def _tell(self, observation: Any, reward: float, terminated: bool, *, reset: bool) -> None:
        if self._told is not None:
            self._told(np.asarray(observation)[None], np.array([reward]), np.array([terminated]), np.array([reset]))

    def _picture(self) -> Array:
        return np.asarray(self._env.render())
