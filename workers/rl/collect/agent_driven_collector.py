"""The collector for an agent that has its own training loop.

The agent's loop decides when to step; the engine receives each step afterwards.
"""

from typing import Final

from workers.core.types import Array, CollectPlan, Experience, RestoreReport, StateTree
from workers.rl.collect.vector_collector import RestorableCollector, VectorCollector
from workers.rl.envs.vector import EpisodeVector

_ONE_STEP: Final = CollectPlan(vector_steps=1)
_NOTE: Final = (
    "resume_statistical",
    (
        "The agent trains in a loop of its own, whose place is not saved: a rollout that was begun "
        "is given up, so the resume is statistical."
    ),
)


class AgentDrivenCollector(RestorableCollector):
    """Steps a vector environment for an agent's own loop and passes each step to the engine once.

    After each `step`, the loop has the engine finish its iteration, in which the engine calls
    `collect`. `begin` begins the next episodes at once, as such loops expect.

    Args:
        env: The vector environment; nothing else may step it, and the caller closes it.
        seed: The run's seed.
    """

    def __init__(self, env: EpisodeVector, seed: int) -> None:
        self._fixed_actions = _FixedActions()
        self._inner = VectorCollector(env, self._fixed_actions, seed)
        self._made: Experience | None = None
        self.num_envs = env.num_envs

    # Called by the agent's loop

    def begin(self) -> Array:
        """Begins episodes in free slots and returns the current observations [B, ...].

        The array is valid until the next step.
        """
        return self._inner.begin_due_episodes()

    def step(self, actions: Array) -> Experience:
        """Makes one vector step with `actions` [B, ...]; returns it as an experience [1, B, ...].

        The arrays of the experience are valid until the next step.
        """
        self._fixed_actions.actions = actions
        self._made = self._inner.collect(_ONE_STEP)
        return self._made

    # Called by the engine

    def collect(self, plan: CollectPlan) -> Experience:
        """Returns the newest step, or an empty experience if there was none since the last call."""
        del plan
        made, self._made = self._made, None
        return made or Experience.without_transitions(self.num_envs)

    def state_dict(self) -> StateTree:
        """Returns the episodes in progress and the number of episodes begun in each slot."""
        return self._inner.state_dict()

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the episodes in progress; never exact, since the agent's loop starts anew."""
        return RestoreReport(is_exact=False, notes=(_NOTE, *self._inner.restore(state).notes))


class _FixedActions:
    """An actor that returns the actions that the agent's loop chose."""

    actions: Array

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns `actions`, which `AgentDrivenCollector.step` has set."""
        del observation, explore
        return self.actions
