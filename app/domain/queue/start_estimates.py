"""When waiting jobs will start. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.domain.queue.decision import PoolState
from app.domain.queue.start_order import Group, Heads, QueuedJob

_SHORTEST_WAIT: Final = timedelta(minutes=1)


class ComparedStart(NamedTuple):
    """The first estimate of a start, and the actual start."""

    made_at: datetime
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
    """Returns how well some starts were estimated.

    Jobs that were to start within a minute are left out: the interval of such an estimate is as
    short as the moment that a worker takes to claim the job.
    """
    waited = [one for one in starts if one.median - one.made_at >= _SHORTEST_WAIT]
    if not waited:
        return Accuracy(0, None, None)
    errors = [abs((one.started_at - one.median).total_seconds()) for one in waited]
    inside = sum(one.earliest <= one.started_at <= one.latest for one in waited)
    return Accuracy(len(waited), statistics.median(errors), inside / len(waited))


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
