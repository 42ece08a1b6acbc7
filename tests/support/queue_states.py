"""Queued jobs, workers and states of a pool for tests of decisions."""

from collections.abc import Sequence
from datetime import timedelta

from app.domain.queue import usage
from app.domain.queue.decision import PoolState
from app.domain.queue.holds import RunningLimits
from app.domain.queue.placement import WorkerOffer
from app.domain.queue.start_order import Group, Heads, QueuedJob, Shares, UsageAccount
from palestra.contract.names import PriorityClass

NOW = usage.LANDMARK + timedelta(weeks=46)
"""A whole number of half-lives after the landmark: usage is exact, so equal usage is a tie."""


def make_job(
    name: str,
    user: str = "ada",
    *,
    project: str = "robots",
    priority_class: PriorityClass = PriorityClass.NORMAL,
    priority: int = 0,
    seed_index: int = 0,
    age: float = 0.0,
    gpus: int = 0,
    version: int = 2,
    requirements: str = "",
    experiment: str = "exp_1",
    wall_seconds: int | None = None,
) -> QueuedJob:
    return QueuedJob(
        id=name,
        attempt=0,
        group=Group(priority_class, project, user),
        priority=priority,
        seed_index=seed_index,
        queued_at=NOW - timedelta(seconds=age),
        gpus=gpus,
        version=version,
        requirements=requirements,
        experiment_id=experiment,
        wall_seconds=wall_seconds,
        grace_seconds=120,
    )


def make_state(
    jobs: Sequence[QueuedJob],
    workers: Sequence[WorkerOffer] = (),
    usage_of: dict[tuple[str, str], float] | None = None,
    shares: dict[str, float] | None = None,
    *,
    is_waiting_known: bool = False,
    limits: RunningLimits | None = None,
) -> PoolState:
    """Returns a state; `is_waiting_known` makes each group wait since its oldest job was queued."""
    groups: dict[Group, list[QueuedJob]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    projects = {job.group.project_id for job in jobs}
    return PoolState(
        shares=Shares(
            now=NOW,
            shares=shares or dict.fromkeys(projects, 1.0),
            usage={
                UsageAccount(*account): seconds * usage.weight(NOW)
                for account, seconds in (usage_of or {}).items()
            },
        ),
        heads={
            group: Heads(
                jobs=sorted(own, key=lambda job: job.own_order),
                is_complete=True,
                waiting_since=min(job.queued_at for job in own) if is_waiting_known else NOW,
            )
            for group, own in groups.items()
        },
        workers=workers,
        limits=limits or RunningLimits(),
    )


def make_worker(
    name: str = "worker",
    free_slots: int = 1,
    gpus: int = 0,
    free_seconds: float | None = None,
    *,
    busy: Sequence[float | None] = (),
    takes_several_slots: bool = True,
) -> WorkerOffer:
    """Returns a worker; `busy` has the seconds after which each busy slot is free."""
    return WorkerOffer(
        worker_id=name,
        free_slots=free_slots,
        gpus=gpus,
        versions=frozenset({1, 2}),
        slots=max(1, free_slots + len(busy)),
        takes_several_slots=takes_several_slots,
        busy_until=[None if one is None else NOW + timedelta(seconds=one) for one in busy],
        free_until=None if free_seconds is None else NOW + timedelta(seconds=free_seconds),
    )
