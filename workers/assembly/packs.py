"""Makes packs of the parts of several runs of one definition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from workers.assembly.part_set import PartSet
from workers.rl.agents.packs.pack import Pack, Packable
from workers.rl.agents.shells.replay_agent import ReplayAgent
from workers.rl.agents.shells.rollout_agent import RolloutAgent
from workers.rl.collect.pack_collector import PackCollector
from workers.rl.collect.vector_collector import VectorCollector


@dataclass(frozen=True, slots=True)
class PackedSets:
    """The parts of several runs, some of which act and learn as one batch."""

    sets: list[PartSet]
    leave: Callable[[int], None]
    """Must be called with the index of a run that ended, before another run continues."""


def pack_sets(sets: Sequence[PartSet], starts: Sequence[object]) -> PackedSets:
    """Returns parts that act and learn as one batch where agent and collector can.

    Args:
        sets: Newly built parts of one definition, one set per seed.
        starts: Starting position of each run, hashable; only runs with equal ones are packed.
    """
    packed, packs = list(sets), dict[int, tuple[Pack, int]]()
    for members in _groups(sets, starts):
        pack = Pack(
            [cast("Packable", sets[index].agent) for index in members],
            sets[members[0]].compile or "eager",
        )
        collector = PackCollector(
            pack, [cast("VectorCollector", sets[index].collector) for index in members]
        )
        for place, index in enumerate(members):
            packed[index] = replace(
                sets[index], agent=pack.members[place], collector=collector.members[place]
            )
            packs[index] = pack, place

    def leave(index: int) -> None:
        if index in packs:
            pack, place = packs[index]
            pack.leave(place)

    return PackedSets(packed, leave)


def _groups(sets: Sequence[PartSet], starts: Sequence[object]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for index, (parts, start) in enumerate(zip(sets, starts, strict=True)):
        if _can_be_packed(parts):
            groups.setdefault(start, []).append(index)
    return [members for members in groups.values() if len(members) > 1]


def _can_be_packed(parts: PartSet) -> bool:
    agent = parts.agent
    has_equal_steps = (
        isinstance(agent, ReplayAgent | RolloutAgent) and agent.collect_plan.episodes is None
    )
    return (
        has_equal_steps
        and not hasattr(agent, "observe_evaluation")
        and isinstance(parts.collector, VectorCollector)
    )
