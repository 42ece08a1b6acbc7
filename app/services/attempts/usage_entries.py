"""Books what an attempt used once it has ended."""

from datetime import datetime
from typing import Any

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.repositories import usage as rows
from palestra.contract.names import new_id
from palestra.contract.states import INFRASTRUCTURE_CAUSES


async def book(session: Session, job: JobRow, attempt: AttemptRow, environment: str | None) -> None:
    """Appends the interval of an ended attempt to the ledger and charges its account.

    Time that a failure of the infrastructure lost is booked as `lost` and not charged: for a
    training the time after its newest verified snapshot, for any other attempt all of it.
    """
    start, end = attempt.started_at, attempt.ended_at
    if end is None or end <= start:
        return
    kept = await _kept_until(session, job, attempt, start, end)
    entry = _entry(job, attempt, environment)
    if kept > start:
        await rows.add_entry(
            session,
            {**entry, "id": new_id("use"), "kind": "used", "started_at": start, "ended_at": kept},
        )
    if end > kept:
        await rows.add_entry(
            session,
            {**entry, "id": new_id("use"), "kind": "lost", "started_at": kept, "ended_at": end},
        )


async def _kept_until(
    session: Session, job: JobRow, attempt: AttemptRow, start: datetime, end: datetime
) -> datetime:
    """Returns the end of the attempt's work that is kept; later work has to be done again."""
    if attempt.cause is None or attempt.cause not in INFRASTRUCTURE_CAUSES:
        return end
    if not job.schedule.writes_training_state:
        return start
    newest: datetime | None = await rows.find_newest_snapshot_time(session, attempt.id)
    return start if newest is None else min(max(newest, start), end)


def _entry(job: JobRow, attempt: AttemptRow, environment: str | None) -> dict[str, Any]:
    return {
        "pool": job.pool,
        "project_id": job.project_id,
        "user_id": job.created_by,
        "experiment_id": job.experiment_id,
        "job_id": job.id,
        "attempt_id": attempt.id,
        "worker_id": attempt.worker_id,
        "schedule": job.schedule,
        "priority_class": job.priority_class,
        "environment": environment,
        "devices": max(1, job.gpus),
        "is_gpu": job.gpus > 0,
    }
