"""Gathers experience for a pack: each member steps environments of its own, and all act together."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from workers.collect.collector import VectorCollector
from workers.core.types import Array, CollectPlan, Experience, RestoreReport, StateTree


class ActsTogether(Protocol):
    """The agents of a pack."""

    @property
    def live(self) -> list[int]:
        """Members that have not left."""
        ...

    def act(self, observations: Mapping[int, Array]) -> dict[int, Array]:
        """Returns exploring actions [B, ...] of each member for its observations [B, ...]."""
        ...

    def observe(self, index: int, experience: Experience) -> None:
        """Lets a member store what was gathered for it."""
        ...


class PackCollector:
    """The collectors of a pack. The first member that asks lets all of them gather and observe; the others find theirs done.

    Args:
        agents: Act and observe.
        collectors: One per member.
    """

    def __init__(self, agents: ActsTogether, collectors: Sequence[VectorCollector]) -> None:
        self._agents = agents
        self._collectors = list(collectors)
        self._ready: dict[int, Experience] = {}

    @property
    def members(self) -> list["MemberCollector"]:
        """Returns the collector of each member, in order."""
        return [MemberCollector(self, index, collector) for index, collector in enumerate(self._collectors)]

    def collect(self, index: int, plan: CollectPlan) -> Experience:
        """Returns what was gathered for a member by the plan.

        Raises:
            RuntimeError: If the members are not asked in turn.
        """
        if index not in self._ready:
            if self._ready.keys() & set(self._agents.live):
                raise RuntimeError(f"members {sorted(self._ready)} of the pack did not ask for their experience: they are out of step")
            self._gather(plan)
        return self._ready.pop(index)

    def _gather(self, plan: CollectPlan) -> None:
        live = {index: self._collectors[index] for index in self._agents.live}
        steps = [collector.open(plan) for collector in live.values()]
        for step in range(steps[0]):
            actions = self._agents.act({index: collector.observation(step) for index, collector in live.items()})
            for index, collector in live.items():
                collector.advance(step, actions[index])
        self._ready = {index: collector.close() for index, collector in live.items()}
        for index, experience in self._ready.items():
            self._agents.observe(index, experience)


class MemberCollector:
    """One member's collector, as its engine sees it.

    Args:
        pack: Gathers.
        index: Which member.
        own: Keeps the member's environments and episodes.
    """

    def __init__(self, pack: PackCollector, index: int, own: VectorCollector) -> None:
        self._pack = pack
        self._index = index
        self._own = own

    @property
    def num_envs(self) -> int:
        """B."""
        return self._own.num_envs

    def collect(self, plan: CollectPlan) -> Experience:
        """Gathers experience, together with all others."""
        return self._pack.collect(self._index, plan)

    def state_dict(self) -> StateTree:
        """Returns the running episodes and the numbering, the same as alone."""
        return self._own.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Like `restore`, for callers that do not ask how it went."""
        self._own.restore(state)

    def restore(self, state: StateTree) -> RestoreReport:
        """Finds back into the running episodes."""
        return self._own.restore(state)
