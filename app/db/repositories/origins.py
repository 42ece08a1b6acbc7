"""Reads the code, versions and devices that runs were trained with."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import select

from app.db.engine import Session
from app.db.models.experiments import RunRow, SubmissionRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.repositories.value_lists import split_values


class TrainingOrigin(NamedTuple):
    """What one training attempt of a run recorded."""

    run_id: str
    ran_with: dict[str, Any]
    """Code, packages and hardware of the worker at the claim."""
    report: dict[str, Any] | None
    """Versions and device that the trainer reported; `None` before its end."""


async def list_origins(session: Session, run_ids: Collection[str]) -> list[TrainingOrigin]:
    """Returns the records of the runs' training attempts, those of one run oldest first."""
    found: list[TrainingOrigin] = []
    for some in split_values(run_ids):
        query = (
            select(AttemptRunRow.run_id, AttemptRow.ran_with, AttemptRow.provenance)
            .join(AttemptRunRow, AttemptRunRow.attempt_id == AttemptRow.id)
            .where(AttemptRunRow.run_id.in_(some), AttemptRunRow.training.is_(True))
            .order_by(AttemptRow.started_at, AttemptRow.id)
        )
        found += [TrainingOrigin(*row) for row in await session.execute(query)]
    return found


async def load_submissions(session: Session, run_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Returns what the submission of each run recorded."""
    found: dict[str, dict[str, Any]] = {}
    for some in split_values(run_ids):
        query = (
            select(RunRow.id, SubmissionRow.provenance)
            .join(SubmissionRow, SubmissionRow.id == RunRow.submission_id)
            .where(RunRow.id.in_(some))
        )
        found.update((row[0], row[1]) for row in await session.execute(query))
    return found
