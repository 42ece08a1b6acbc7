"""Gathers experience for a pack, whose environments are stepped as one vector.

n members, B environments of each.
"""

from collections.abc import Sequence
from typing import Protocol

from workers.core.protocols import Actor
from workers.core.types import CollectPlan, EpisodeEnd, Experience, RestoreReport, StateTree
from workers.rl.collect.vector_collector import RestoringCollector, VectorCollector
from workers.rl.envs.concatenated_vector import joined


class ActsTogether(Actor, Protocol):
    """The agents of a pack, which act for all live members on observations [n * B, ...]."""

    @property
    def live(self) -> list[int]:
        """Members that have not left, in order."""

    @property
    def members(self) -> Sequence[Actor]:
        """What stands for each member, in order."""

    def observe(self, experience: Experience) -> None:
        """Lets these members store what was gathered for them, [T, n * B, ...]."""


class PackCollector:
    """The collectors of a pack.

    The first member that asks lets all of them gather and observe; the others find theirs done.

    Args:
        agents: Act and observe.
        collectors: One per member, all alike.
    """

    def __init__(self, agents: ActsTogether, collectors: Sequence[VectorCollector]) -> None:
        self._agents = agents
        self._collectors = list(collectors)
        self._num_envs = collectors[0].num_envs
        for own, member in zip(collectors, agents.members, strict=True):
            own.actor = member  # for its `episodes_lost`
        self._whole: VectorCollector | None = None
        """Steps the environments of the members `_stepped`."""
        self._stepped: list[int] = []
        self._plans: dict[int, CollectPlan] = {}
        self._parts: dict[int, list[Experience]] = {}
        """By vector steps what each member is given: views, made once."""
        self._with_episodes: list[Experience] = []
        """Those that hold episodes."""
        self._ready: dict[int, Experience] = {}

    @property
    def members(self) -> list["MemberCollector"]:
        """Returns the collector of each member, in order."""
        return [
            MemberCollector(self, index, collector)
            for index, collector in enumerate(self._collectors)
        ]

    def collect(self, index: int, plan: CollectPlan) -> Experience:
        """Returns what was gathered for a member by the plan, whose length is known before.

        Raises:
            RuntimeError: If the members are not asked in turn.
        """
        if index not in self._ready:
            if self._ready and self._ready.keys() & set(self._agents.live):
                raise RuntimeError(
                    f"members {sorted(self._ready)} of the pack did not ask for their experience: "
                    "they are out of step"
                )
            self._gather(plan.vector_steps or -(-(plan.env_steps or 0) // self._num_envs))
        return self._ready.pop(index)

    def settled(self) -> None:
        """Brings the members' own collectors up to date."""
        if self._whole is not None:
            self._whole.settled()

    def moved(self) -> None:
        """Says that a member's episodes were restored."""
        if self._whole is not None:
            self._whole.moved()

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
        self._hand_out(experience.episodes, parts)
        self._ready = dict(zip(self._stepped, parts, strict=True))

    def _join(self, live: Sequence[int]) -> None:
        self.settled()
        collectors = [self._collectors[index] for index in live]
        self._whole = VectorCollector(joined([own.env for own in collectors]), self._agents, 0)
        self._whole.take(collectors)
        self._stepped = list(live)
        self._parts = {}

    def _split(self, experience: Experience) -> list[Experience]:
        width = self._num_envs
        return [
            experience.columns(slice(index * width, (index + 1) * width))
            for index in range(len(self._stepped))
        ]

    def _hand_out(self, episodes: Sequence[EpisodeEnd], parts: list[Experience]) -> None:
        """Tells each member of its own episodes."""
        for part in self._with_episodes:
            part.episodes = ()
        self._with_episodes.clear()
        for end in episodes:
            member, index = divmod(end.env_index, self._num_envs)
            parts[member].episodes = (*parts[member].episodes, end._replace(env_index=index))
            self._with_episodes.append(parts[member])


class MemberCollector(RestoringCollector):
    """One member's collector, as its engine sees it.

    Args:
        pack: Gathers.
        index: Which member.
        own: Saves and restores the member's episodes.
    """

    def __init__(self, pack: PackCollector, index: int, own: VectorCollector) -> None:
        self._pack = pack
        self._index = index
        self._own = own
        self.num_envs = own.num_envs

    def collect(self, plan: CollectPlan) -> Experience:
        """Gathers experience, together with all others."""
        return self._pack.collect(self._index, plan)

    def state_dict(self) -> StateTree:
        """Returns the running episodes and the numbering, the same as alone."""
        self._pack.settled()
        return self._own.state_dict()

    def restore(self, state: StateTree) -> RestoreReport:
        """Finds back into the running episodes."""
        report = self._own.restore(state)
        self._pack.moved()
        return report
