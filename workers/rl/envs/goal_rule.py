"""What a goal-conditioned environment says of other goals than the one that was asked for.

Such an environment observes a dict of `observation`, `achieved_goal` and `desired_goal` and offers
`compute_reward(achieved, desired, info)` and perhaps `compute_terminated`, as those of
gymnasium-robotics do.
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
    """Returns whether observations of a space hold an achieved and a desired goal."""
    return isinstance(space, gym.spaces.Dict) and {ACHIEVED, DESIRED} <= set(space.spaces)


def goal_rule(env: Env, space: gym.Space[object]) -> GoalRule | None:
    """Returns where the goals stand and what they are worth; `None` where the environment has none.

    Args:
        env: Asked for rewards as long as the rule is used, never stepped.
        space: Its own observation space.
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
            _asked(inner.compute_terminated, goals)
            if hasattr(inner, "compute_terminated")
            else np.zeros(len(achieved))
        )
        return _asked(inner.compute_reward, goals).astype(np.float64), ended.astype(np.bool_)

    return GoalRule(flat.span(ACHIEVED), flat.span(DESIRED), judge)


def _asked(function: Callable[..., object], goals: list[Array]) -> Array:
    """Asks for all goals at once, or one by one where that gives no answer for each."""
    achieved, desired = goals
    if len(achieved) != 1:
        try:
            answer = np.asarray(function(achieved, desired, {}))
        except ValueError:  # an array where one truth value was expected
            pass
        else:
            if answer.shape == (len(achieved),):
                return answer
    return np.array(
        [function(one, other, {}) for one, other in zip(achieved, desired, strict=True)]
    ).reshape(len(achieved))
