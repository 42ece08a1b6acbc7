"""Collects experience for a pack by stepping its environments as one vector environment.

Shapes: n live members, B environments per member.
"""

from collections.abc import Sequence
from typing import Protocol

from workers.core.protocols import Actor
from workers.core.types import CollectPlan, EpisodeEnd, Experience, RestoreReport, StateTree
from workers.rl.collect.vector_collector import RestorableCollector, VectorCollector
from workers.rl.envs.concatenated_vector import concatenate_vectors


class PackActor(Actor, Protocol):
    """The agents of a pack, which act for all live members on observations [n * B, ...]."""

    @property
    def live(self) -> list[int]:
        """Members that have not left, in order."""

    @property
    def members(self) -> Sequence[Actor]:
        """One actor per member, in order.

        Collectors call the method `mark_lost_episodes` of an actor that has it.
        """

    def observe(self, experience: Experience) -> None:
        """Stores the experience of the live members, [T, n * B, ...]."""


class PackCollector:
    """Collects for all members of a pack at once.

    The first member that calls `collect` makes all live members collect and observe; the other
    members then get the experience that was already collected for them.

    Args:
        agents: The agents of the pack.
        collectors: One per member, with the same kind and number of environments.
    """

    def __init__(self, agents: PackActor, collectors: Sequence[VectorCollector]) -> None:
        self._agents = agents
        self._collectors = list(collectors)
        self._num_envs = collectors[0].num_envs
        for own, member in zip(collectors, agents.members, strict=True):
            # A restored collector calls `mark_lost_episodes` of its member.
            own.actor = member
        self._whole: VectorCollector | None = None
        """Steps the environments of the members `_stepped`."""
        self._stepped: list[int] = []
        self._plans: dict[int, CollectPlan] = {}
        self._parts: dict[int, list[Experience]] = {}
        """Experience of each member by number of vector steps: views, created once."""
        self._with_episodes: list[Experience] = []
        """Members' experiences that contain ended episodes of the last collect."""
        self._ready: dict[int, Experience] = {}

    @property
    def members(self) -> list["MemberCollector"]:
        """Returns the collector of each member, in order."""
        return [
            MemberCollector(self, index, collector)
            for index, collector in enumerate(self._collectors)
        ]

    def collect(self, index: int, plan: CollectPlan) -> Experience:
        """Returns the experience of member `index` for a plan of vector steps or env_steps.

        Raises:
            RuntimeError: If another live member has not called `collect` since the last iteration.
        """
        if index not in self._ready:
            if self._ready and self._ready.keys() & set(self._agents.live):
                raise RuntimeError(
                    f"members {sorted(self._ready)} of the pack did not ask for their experience: "
                    "they are out of step"
                )
            self._gather(plan.vector_steps or -(-(plan.env_steps or 0) // self._num_envs))
        return self._ready.pop(index)

    def flush_counters(self) -> None:
        """Updates late counters, before the state of a member's own collector is read."""
        if self._whole is not None:
            self._whole.flush_counters()

    def refresh_after_restore(self) -> None:
        """Notifies the joined collector that a member's episodes were restored."""
        if self._whole is not None:
            self._whole.refresh_after_restore()

    def _gather(self, steps: int) -> None:
        if self._stepped != self._agents.live:
            self._join(self._agents.live)
        assert self._whole is not None
        plan = self._plans.get(steps) or self._plans.setdefault(
            steps, CollectPlan(vector_steps=steps)
        )
        experience = self._whole.collect(plan)
        self._agents.observe(experience)
        parts = self._parts.get(steps) or self._parts.setdefault(steps, self._split(experience))
        self._assign_episodes(experience.episodes, parts)
        self._ready = dict(zip(self._stepped, parts, strict=True))

    def _join(self, live: Sequence[int]) -> None:
        self.flush_counters()
        collectors = [self._collectors[index] for index in live]
        self._whole = VectorCollector(
            concatenate_vectors([own.env for own in collectors]), self._agents, 0
        )
        self._whole.take(collectors)
        self._stepped = list(live)
        self._parts = {}

    def _split(self, experience: Experience) -> list[Experience]:
        width = self._num_envs
        return [
            experience.columns(slice(index * width, (index + 1) * width))
            for index in range(len(self._stepped))
        ]

    def _assign_episodes(self, episodes: Sequence[EpisodeEnd], parts: list[Experience]) -> None:
        """Assigns each ended episode to its member's experience."""
        for part in self._with_episodes:
            part.episodes = ()
        self._with_episodes.clear()
        for end in episodes:
            member, index = divmod(end.env_index, self._num_envs)
            parts[member].episodes = (*parts[member].episodes, end._replace(env_index=index))
            self._with_episodes.append(parts[member])


class MemberCollector(RestorableCollector):
    """The collector that the engine of one member uses.

    Args:
        pack: Collects for all members.
        index: Index of the member.
        own: The member's own collector, which saves and restores its episodes.
    """

    def __init__(self, pack: PackCollector, index: int, own: VectorCollector) -> None:
        self._pack = pack
        self._index = index
        self._own = own
        self.num_envs = own.num_envs

    def collect(self, plan: CollectPlan) -> Experience:
        """Returns the member's experience, collected together with all live members."""
        return self._pack.collect(self._index, plan)

    def state_dict(self) -> StateTree:
        """Returns the member's episodes in progress, in the format of a `VectorCollector`."""
        self._pack.flush_counters()
        return self._own.state_dict()

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the member's episodes in progress."""
        report = self._own.restore(state)
        self._pack.refresh_after_restore()
        return report
