"""The collector of an agent that has its own training loop.

The agent makes the steps; the engine receives them one by one.
"""

from typing import Final

from workers.core.types import Array, CollectPlan, Experience, RestoreReport, StateTree
from workers.rl.collect.vector_collector import RestoringCollector, VectorCollector
from workers.rl.envs.vector import EpisodeVector

_ONE_STEP: Final = CollectPlan(vector_steps=1)
_NOTE: Final = (
    "resume_statistical",
    (
        "The agent trains in a loop of its own, whose place is not saved: a rollout that was begun "
        "is given up, so the resume is statistical."
    ),
)


class OwnLoopCollector(RestoringCollector):
    """Steps a vector environment for an agent's own loop and passes each step to the engine once.

    The loop calls `step`, and lets the engine end the iteration, which calls `collect`, before the
    next one. Episodes begin at once where one ended, as such loops expect.

    Args:
        env: Stepped by nobody else; the caller closes it.
        seed: The run's seed.
    """

    def __init__(self, env: EpisodeVector, seed: int) -> None:
        self._given = _Given()
        self._inner = VectorCollector(env, self._given, seed)
        self._made: Experience | None = None
        self.num_envs = env.num_envs

    # What the loop calls

    def begin(self) -> Array:
        """Begins the episodes that are due and returns the current observations [B, ...].

        They are borrowed until the next step.
        """
        return self._inner.begin_due()

    def step(self, actions: Array) -> Experience:
        """Makes one step [1, B, ...] in every environment.

        Its arrays are valid until the next one.
        """
        self._given.actions = actions
        self._made = self._inner.collect(_ONE_STEP)
        return self._made

    # What the engine calls

    def collect(self, plan: CollectPlan) -> Experience:
        """Returns the step that was made since the last call.

        An empty experience where there was none.
        """
        del plan
        made, self._made = self._made, None
        return made or Experience.without_transitions(self.num_envs)

    def state_dict(self) -> StateTree:
        """Returns the running episodes and the numbering."""
        return self._inner.state_dict()

    def restore(self, state: StateTree) -> RestoreReport:
        """Finds back into the running episodes; never exactly, since the loop begins anew."""
        return RestoreReport(exact=False, notes=(_NOTE, *self._inner.restore(state).notes))


class _Given:
    """An actor whose choice somebody else made."""

    actions: Array

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns the actions that were given."""
        del observation, explore
        return self.actions
