"""Assigns queued jobs to workers: the next ones of each pool, one for each free slot."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import assignments, queue_groups
from app.db.repositories import jobs as job_rows
from app.db.repositories import snapshots as snapshot_rows
from app.db.repositories.assignments import AssignmentTarget
from app.domain.queue import usage
from app.domain.queue.start_order import ExperimentKey
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolDecision, PoolQueue
from palestra.contract.states import Cause, JobState, SnapshotState
from palestra.contract.work_order import Failure

_ACTOR: Final = "daemon:dispatcher"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolAssignments:
    """The decision on the queue of a pool."""

    pool: str
    made: PoolDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedJob:
    """A job with the worker that is to receive its dispatch message."""

    job_id: str
    expected_attempt: int
    queue: str
    """The worker's Celery queue."""
    slots: int = 1
    """Slots of the worker that it takes."""


async def decide(session: Session, equipped: EquippedWorkers) -> list[PoolAssignments]:
    """Decides which queued jobs start now on which workers, for each pool that is not paused.

    All projects that a pool admits share its queue and its slots. A limit of an experiment holds
    over all pools, so each decision counts the jobs that those before it start.
    """
    found = []
    started: Counter[ExperimentKey] = Counter()
    for pool in await queue_groups.list_open_pools(session):
        made = await PoolQueue(session, pool, equipped, started).decide()
        started.update(each.job.experiment for each in made.decision.assignments)
        if made.decision.assignments or made.empty_groups:
            found.append(PoolAssignments(pool=pool, made=made))
    return found


async def assign(
    session: Session, decisions: Sequence[PoolAssignments], seconds: float
) -> list[AssignedJob]:
    """Stores assignments, which expire after `seconds`; returns the stored ones.

    Jobs that have changed since the decision are skipped.
    """
    chosen: dict[str, str] = {}
    for one in decisions:
        weight = usage.weight(one.made.now - timedelta(seconds=usage.QUANTUM_SECONDS))
        made = one.made.decision.assignments
        if made:
            await assignments.assign(session, made, seconds, weight)
        chosen |= {each.job.id: each.worker_id for each in made}
        await queue_groups.drop_empty_groups(session, one.pool, one.made.empty_groups)
    held = await assignments.load_targets(session, list(chosen))
    return [
        _build_assigned_job(job_id, held[job_id])
        for job_id, worker_id in chosen.items()
        if job_id in held and held[job_id].worker_id == worker_id
    ]


async def list_unclaimed(session: Session) -> list[AssignedJob]:
    """Returns the jobs that are assigned and not claimed yet.

    The dispatcher that assigned them may have ended before it sent their messages.
    """
    held = await assignments.load_targets(session, await assignments.list_unclaimed(session))
    return [_build_assigned_job(job_id, target) for job_id, target in held.items()]


def _build_assigned_job(job_id: str, target: AssignmentTarget) -> AssignedJob:
    return AssignedJob(
        job_id=job_id, expected_attempt=target.attempt, queue=target.queue, slots=target.slots
    )


async def unassign(session: Session, jobs: Sequence[AssignedJob]) -> None:
    """Ends assignments whose dispatch message could not be sent."""
    await assignments.unassign(session, [job.job_id for job in jobs])


async def fail_without_snapshot(session: Session) -> int:
    """Fails queued jobs whose snapshot was deleted while they waited; returns how many."""
    without_snapshot = [
        job
        for job in await job_rows.list_pinned_to_snapshots(session)
        if await _is_gone(session, job)
    ]
    failure = Failure(
        message=(
            "The snapshot that this job was to read was deleted while it waited. Submit it "
            "again with another one."
        )
    )
    failed = 0
    for job in without_snapshot:
        # The reaper of another process may have been faster.
        locked = await job_rows.find_by_id(session, job.id, lock=True)
        if locked is None or locked.state != JobState.QUEUED:
            continue
        await job_state.move(
            session,
            locked,
            JobState.FAILED,
            TransitionDetails(actor=_ACTOR, cause=Cause.NO_RESULT, failure=failure),
        )
        failed += 1
    return failed


async def _is_gone(session: Session, job: JobRow) -> bool:
    snapshot = await snapshot_rows.find(session, str((job.evaluate or {})["snapshot"]))
    return snapshot is None or snapshot.state in {SnapshotState.DELETED, SnapshotState.SKIPPED}
