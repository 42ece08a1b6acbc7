"""Compares the order of a queue without and with a change. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from app.domain.queue.start_order import QueuedJob


@dataclass(frozen=True, slots=True)
class Moved:
    """Jobs that get another place, by ID, the first to start with the change first."""

    earlier: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedPlaces:
    """The jobs beside the changed ones that get another place."""

    own: Moved
    others: Moved


def compare_orders(
    before: Sequence[QueuedJob],
    after: Sequence[QueuedJob],
    *,
    changed: Collection[str],
    user_id: str,
) -> ChangedPlaces:
    """Returns which jobs start earlier or later among all than they would without a change.

    A job at the end of one order only is left out: its place in the other one is not known.

    Args:
        before: The first jobs of the queue.
        after: The same with the change.
        changed: IDs of the jobs that are changed themselves.
        user_id: The person whose jobs count as own.
    """
    places = map_places(before)
    found: dict[tuple[bool, bool], list[str]] = {}
    for place, job in enumerate(after):
        former = places.get(job.id)
        if job.id in changed or former is None or former == place:
            continue
        found.setdefault((job.group.user_id == user_id, place < former), []).append(job.id)
    own, others = (
        Moved(tuple(found.get((is_own, True), ())), tuple(found.get((is_own, False), ())))
        for is_own in (True, False)
    )
    return ChangedPlaces(own, others)


def map_places(order: Sequence[QueuedJob]) -> Mapping[str, int]:
    """Returns the places of jobs in an order, from 0, by ID."""
    return {job.id: place for place, job in enumerate(order)}
