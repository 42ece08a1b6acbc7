"""Until when the busy slots of workers are busy for certain."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Select, select

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.repositories import job_queue
from palestra.contract.job_options import Limits
from palestra.contract.states import LIVE_ATTEMPT_STATES

_GRACE_SECONDS: Final = Limits().grace_seconds
_LIMITS: Final = (
    JobRow.schedule,
    JobRow.limits["wall_seconds"].as_integer().label("wall_seconds"),
    JobRow.limits["grace_seconds"].as_integer().label("grace_seconds"),
)


async def load_busy_until(
    session: Session, worker_ids: Collection[str]
) -> dict[str, list[datetime | None]]:
    """Returns when each busy slot of some workers is free at the latest, by worker ID.

    `None` for a slot whose job has no time limit. A job that is assigned counts as starting when
    its assignment expires.
    """
    found: dict[str, list[datetime | None]] = {worker_id: [] for worker_id in worker_ids}
    for query in (_select_live(worker_ids), _select_assigned(worker_ids)):
        for row in await session.execute(query):
            found[row.worker_id] += [_find_end(row)] * row.slots
    return found


def _select_live(worker_ids: Collection[str]) -> Select[Any]:
    return (
        select(
            AttemptRow.worker_id,
            AttemptRow.slot_count.label("slots"),
            AttemptRow.started_at.label("start"),
            *_LIMITS,
        )
        .join(JobRow, JobRow.id == AttemptRow.job_id)
        .where(AttemptRow.worker_id.in_(worker_ids), AttemptRow.state.in_(LIVE_ATTEMPT_STATES))
    )


def _select_assigned(worker_ids: Collection[str]) -> Select[Any]:
    return select(
        JobRow.assigned_worker_id.label("worker_id"),
        JobRow.assigned_slots.label("slots"),
        JobRow.assigned_until.label("start"),
        *_LIMITS,
    ).where(JobRow.assigned_worker_id.in_(worker_ids), job_queue.is_assigned())


def _find_end(row: Any) -> datetime | None:
    # The time limit of an evaluation that follows a training does not count while that trains.
    if row.wall_seconds is None or row.schedule.follows_training:
        return None
    grace = _GRACE_SECONDS if row.grace_seconds is None else row.grace_seconds
    start: datetime = row.start
    return start + timedelta(seconds=row.wall_seconds + grace)
