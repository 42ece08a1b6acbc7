"""The amount of experience that the next collect gathers."""

from workers.core.types import CollectPlan
from workers.engine.budget import UNLIMITED


class CollectPlanner:
    """Shortens an agent's collect plan where an exact env_step comes before its end.

    Args:
        plan: The agent's collect plan.
        num_envs: Number of environments that are stepped together.
    """

    def __init__(self, plan: CollectPlan, num_envs: int) -> None:
        self._num_envs = num_envs
        self.longest = _vector_steps(plan, num_envs)
        """Vector steps of the full plan; 0 for a plan that ends with episodes."""
        self.whole = plan
        self._whole_env_steps = self.longest * num_envs
        self._cut: dict[int, CollectPlan] = {}

    def shorten_plan(self, env_steps: int) -> CollectPlan:
        """Returns the full plan, or a shorter one that ends once `env_steps` are collected.

        A shorter plan ends at the first vector step with at least that many env_steps.
        """
        if env_steps >= self._whole_env_steps:
            return self.whole
        steps = max(1, -(-env_steps // self._num_envs))
        plan = self._cut.get(steps)
        if plan is None:
            plan = self._cut[steps] = CollectPlan(vector_steps=steps)
        return plan


def _vector_steps(plan: CollectPlan, num_envs: int) -> int:
    if plan.vector_steps is not None:
        return plan.vector_steps
    if plan.env_steps is not None and not plan.needs_whole_episodes:
        return min(-(-plan.env_steps // num_envs), UNLIMITED)
    return 0
