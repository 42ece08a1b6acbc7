"""Reads the code, versions and devices that runs were trained with."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.experiments import RunRow, SubmissionRow
from app.db.models.jobs import AttemptRow, AttemptRunRow


class TrainingOrigin(NamedTuple):
    """What one training attempt of a run recorded."""

    run_id: str
    ran_with: dict[str, Any]
    """Code, packages and hardware of the worker at the claim."""
    report: dict[str, Any] | None
    """Versions and device that the trainer reported; `None` before its end."""


async def list_origins(session: Session, run_ids: Collection[str]) -> list[TrainingOrigin]:
    """Returns the records of the runs' training attempts, those of one run oldest first."""
    if not run_ids:
        return []
    query = (
        select(AttemptRunRow.run_id, AttemptRow.ran_with, AttemptRow.provenance)
        .join(AttemptRunRow, AttemptRunRow.attempt_id == AttemptRow.id)
        .where(is_any_of(AttemptRunRow.run_id, run_ids), AttemptRunRow.training.is_(True))
        .order_by(AttemptRow.started_at, AttemptRow.id)
    )
    return [TrainingOrigin(*row) for row in await session.execute(query)]


async def load_submissions(session: Session, run_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Returns what the submission of each run recorded."""
    if not run_ids:
        return {}
    query = (
        select(RunRow.id, SubmissionRow.provenance)
        .join(SubmissionRow, SubmissionRow.id == RunRow.submission_id)
        .where(is_any_of(RunRow.id, run_ids))
    )
    return {row[0]: row[1] for row in await session.execute(query)}
