"""Plays whole episodes in one environment, step by step and without exploration."""

from collections.abc import Iterator

import gymnasium as gym
import numpy as np

from workers.core.protocols import TrainableAgent
from workers.core.rng import preserve_global_state
from workers.rl.envs.env_types import Env
from workers.rl.evaluate.vector_evaluator import (
    EvaluationObserver,
    derive_action_generator,
    draw_actions,
)


class Player:
    """Plays episodes with an agent in evaluation mode.

    Args:
        env: One environment; owned.
        agent: Acts without exploration.
        draws_actions: Whether actions are drawn from the policy, as in an evaluation of the
            episode, instead of greedy ones.
    """

    def __init__(self, env: Env, agent: TrainableAgent, *, draws_actions: bool = False) -> None:
        self._draws_actions = draws_actions
        self.env = env
        self._agent = agent
        self._on_step: EvaluationObserver | None = getattr(agent, "observe_evaluation", None)
        self._is_discrete = isinstance(env.action_space, gym.spaces.Discrete)
        self.episode_return = 0.0
        """Undiscounted sum of the rewards of the episode so far."""
        self.episode_length = 0
        """env_steps of the episode so far."""

    def play_episode(self, seed: int, max_observations: int | None = None) -> Iterator[None]:
        """Plays one episode; yields after the reset and after each step.

        Stops at the end of the episode, or after yielding `max_observations` times.
        """
        self.episode_return, self.episode_length, is_over = 0.0, 0, False
        rows = [derive_action_generator(seed)] if self._draws_actions else None
        draw = draw_actions(self._agent, seed, rows)
        with preserve_global_state(), self._agent.eval_mode(), draw:
            observation, _ = self.env.reset(seed=seed)
            yield
            while not is_over and (
                max_observations is None or self.episode_length + 1 < max_observations
            ):
                action = self._agent.act(np.asarray(observation)[None], explore=False)[0]
                observation, reward, terminated, truncated, _ = self.env.step(
                    int(action) if self._is_discrete else action
                )
                self.episode_return += float(reward)
                self.episode_length += 1
                is_over = bool(terminated or truncated)
                self._notify(
                    observation,
                    float(reward),
                    bool(terminated),
                    is_reset=is_over or self.episode_length + 1 == max_observations,
                )
                yield

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _notify(
        self, observation: object, reward: float, terminated: bool, *, is_reset: bool
    ) -> None:
        if self._on_step is not None:
            self._on_step(
                np.asarray(observation)[None],
                np.array([reward]),
                np.array([terminated]),
                np.array([is_reset]),
            )
