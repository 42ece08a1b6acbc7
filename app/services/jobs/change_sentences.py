"""Says in words what a change of waiting jobs would do."""

from palestra.contract.change_preview import ChangePreview, PlaceChanges, PreviewedStart
from palestra.contract.durations import describe_duration, describe_wait
from palestra.contract.queue import StartEstimate
from palestra.contract.sizes import format_count


def describe(found: ChangePreview, *, leaves: int, waiting: str | None) -> str:
    """Returns the effect of a change as one sentence or two.

    Args:
        found: The effect.
        leaves: Number of changed jobs that would no longer wait.
        waiting: Why the changed job would wait; `None` for several jobs.
    """
    if found.jobs == 0:
        return "Nothing would change: no selected job would be changed."
    beside = _describe_beside(found.own, found.others)
    if leaves == found.jobs:
        return f"{format_count(leaves, 'job')} would leave the queue{beside}."
    first = found.starts[0]
    if found.jobs == 1:
        if first.new_place is None and waiting:
            return f"Would have no place in the queue{beside}. {waiting}"
        return f"Would {_describe_start(first, beside)}."
    return f"The first of {found.jobs:,} jobs would {_describe_start(first, beside)}."


def _describe_start(one: PreviewedStart, beside: str) -> str:
    former, latter = _measure(one.start), _measure(one.new_start)
    if latter is None:
        place = "no place" if one.new_place is None else f"place {one.new_place:,}"
        if one.place == one.new_place:
            return f"keep {place} in the queue{beside}"
        instead = "none" if one.place is None else f"{one.place:,}"
        return f"have {place} in the queue instead of {instead}{beside}"
    now = describe_wait(latter)
    if former is None:
        return f"start {now}{beside}"
    if describe_wait(former) == now:
        return f"start {now}, as it does now{beside}"
    return f"start {now} instead of {describe_duration(former)}{beside}"


def _measure(estimate: StartEstimate) -> float | None:
    if estimate.median is None or estimate.made_at is None:
        return None
    return (estimate.median - estimate.made_at).total_seconds()


def _describe_beside(own: PlaceChanges, others: PlaceChanges) -> str:
    """Returns the end of a sentence that says how many other jobs get another place."""
    parts = []
    for word in ("later", "earlier"):
        mine, theirs = getattr(own, word), getattr(others, word)
        counts = [
            text
            for number, text in (
                (mine, f"{format_count(mine, 'other job')} of yours"),
                (theirs, f"{format_count(theirs, 'job')} of other people"),
            )
            if number
        ]
        if counts:
            verb = "starts" if mine + theirs == 1 else "start"
            parts.append(f"{' and '.join(counts)} {verb} {word}")
    return f"; {', '.join(parts)}" if parts else ""
