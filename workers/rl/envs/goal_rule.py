"""Computes rewards of a goal-conditioned environment for goals other than the desired one.

The observations of such an environment are dicts of `observation`, `achieved_goal` and
`desired_goal`, and it has a method `compute_reward(achieved, desired, info)` and optionally
`compute_terminated`, like the environments of gymnasium-robotics.
"""

from collections.abc import Callable
from typing import Final

import gymnasium as gym
import numpy as np

from workers.core.types import Array, GoalRule
from workers.rl.envs.env_types import Env
from workers.rl.envs.space_arrays import Flattener

ACHIEVED: Final = "achieved_goal"
DESIRED: Final = "desired_goal"


def has_goals(space: gym.Space[object]) -> bool:
    """Returns whether the observations of `space` contain an achieved and a desired goal."""
    return isinstance(space, gym.spaces.Dict) and {ACHIEVED, DESIRED} <= set(space.spaces)


def goal_rule(env: Env, space: gym.Space[object]) -> GoalRule | None:
    """Returns the positions of the goals in flat observations and a function of their rewards.

    Returns `None` if the environment is not goal-conditioned.

    Args:
        env: The environment whose `compute_reward` the rule calls; it is never stepped.
        space: The environment's observation space before flattening.
    """
    inner: object = env.unwrapped
    if (
        not isinstance(space, gym.spaces.Dict)
        or not has_goals(space)
        or not hasattr(inner, "compute_reward")
    ):
        return None
    flat = Flattener(space)
    shapes = [space[key].shape or () for key in (ACHIEVED, DESIRED)]

    def judge(achieved: Array, desired: Array) -> tuple[Array, Array]:
        goals = [
            one.reshape(-1, *shape) for one, shape in zip((achieved, desired), shapes, strict=True)
        ]
        ended = (
            _call_rule(inner.compute_terminated, goals)
            if hasattr(inner, "compute_terminated")
            else np.zeros(len(achieved))
        )
        return _call_rule(inner.compute_reward, goals).astype(np.float64), ended.astype(np.bool_)

    return GoalRule(flat.span(ACHIEVED), flat.span(DESIRED), judge)


def _call_rule(function: Callable[..., object], goals: list[Array]) -> Array:
    """Calls `function` once for all goals, or per goal if that does not return one value each."""
    achieved, desired = goals
    if len(achieved) != 1:
        try:
            answer = np.asarray(function(achieved, desired, {}))
        except ValueError:
            # The function used an array as a truth value, so it takes one goal only.
            pass
        else:
            if answer.shape == (len(achieved),):
                return answer
    return np.array(
        [function(one, other, {}) for one, other in zip(achieved, desired, strict=True)]
    ).reshape(len(achieved))
