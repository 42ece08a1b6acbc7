"""When waiting jobs will start. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from app.domain.queue.decision import PoolState
from app.domain.queue.start_order import Group, Heads, QueuedJob


class ComparedStart(NamedTuple):
    """The first estimate of a start, and the actual start."""

    earliest: datetime
    median: datetime
    latest: datetime
    started_at: datetime


class Accuracy(NamedTuple):
    """Error and coverage of past estimates of starts."""

    starts: int
    median_error_seconds: float | None
    """Median distance of the actual start from the median of the estimate."""
    coverage: float | None
    """Part of the starts within their interval."""


def measure_accuracy(starts: Sequence[ComparedStart]) -> Accuracy:
    """Returns error and coverage of the estimates of the given starts."""
    if not starts:
        return Accuracy(0, None, None)
    errors = [abs((one.started_at - one.median).total_seconds()) for one in starts]
    inside = sum(one.earliest <= one.started_at <= one.latest for one in starts)
    return Accuracy(len(starts), statistics.median(errors), inside / len(starts))


def add_jobs(state: PoolState, jobs: Sequence[QueuedJob]) -> PoolState:
    """Returns a state in which further jobs are queued.

    A new job after the last loaded job of its group is left out until the whole group is loaded.
    """
    heads = dict(state.heads)
    added: dict[Group, list[QueuedJob]] = {}
    for job in jobs:
        added.setdefault(job.group, []).append(job)
    for group, some in added.items():
        known = heads.get(group)
        if known is None:
            known = Heads(is_complete=True, waiting_since=state.shares.now)
        last = known.jobs[-1].own_order if known.jobs else None
        reached = [
            job for job in some if known.is_complete or (last is not None and job.own_order < last)
        ]
        ordered = sorted([*known.jobs, *reached], key=lambda job: job.own_order)
        heads[group] = known._replace(jobs=ordered)
    return replace(state, heads=heads)
