"""Removes the rows of a deleted project, a bounded number at a time, children before parents.

Nothing says how far a removal has come but the rows that are left, so it goes on wherever it was
interrupted. Rows of the audit log stay.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, func, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from app.db.engine import Session
from app.db.models.access import TokenRow
from app.db.models.artifacts import ArtifactRow, BlobRow
from app.db.models.base import Base
from app.db.models.curves import (
    BlockRow,
    EpochStatsRow,
    EvaluationRow,
    SeriesRow,
    TelemetryBatchRow,
)
from app.db.models.events import EventRow
from app.db.models.experiments import ExperimentRow, RunRow, SubmissionRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow, JobRunRow
from app.db.models.logs import LogBlockRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.models.snapshots import SnapshotFileRow, SnapshotRow

Remove = Callable[[Session, str, int], Awaitable[int]]
"""Removes up to a number of rows that belong to an ID; returns how many it removed."""
Key = InstrumentedAttribute[Any]


def _rows(row: type[Base], keys: tuple[Key, ...], belongs: Callable[[str], Any]) -> Remove:
    """Returns a function that removes rows of one table.

    Args:
        row: The table.
        keys: Its primary key.
        belongs: Returns the condition that a row belongs to an ID.
    """

    async def remove(session: Session, owner: str, limit: int) -> int:
        found = await _removed(session, row, keys, belongs(owner), limit)
        return len(found)

    return remove


async def _removed(
    session: Session, row: type[Base], keys: tuple[Key, ...], belongs: Any, limit: int
) -> list[Any]:
    chosen = select(*keys).where(belongs).limit(limit)
    statement = delete(row).where(tuple_(*keys).in_(chosen)).returning(keys[0])
    return list(await session.scalars(statement.execution_options(synchronize_session=False)))


def _in(column: Key, owned: Key, owner: Key) -> Callable[[str], ColumnElement[bool]]:
    """Returns the condition that a column names a row that belongs to an ID."""
    return lambda wanted: column.in_(select(owned).where(owner == wanted))


OF_RUN: Final[tuple[Remove, ...]] = (
    _rows(BlockRow, (BlockRow.id,), _in(BlockRow.series_id, SeriesRow.id, SeriesRow.run_id)),
    _rows(SeriesRow, (SeriesRow.id,), lambda run_id: SeriesRow.run_id == run_id),
    _rows(LogBlockRow, (LogBlockRow.id,), lambda run_id: LogBlockRow.run_id == run_id),
    _rows(
        EpochStatsRow,
        (EpochStatsRow.attempt_id, EpochStatsRow.seq),
        lambda run_id: EpochStatsRow.run_id == run_id,
    ),
    _rows(EvaluationRow, (EvaluationRow.id,), lambda run_id: EvaluationRow.run_id == run_id),
    _rows(
        SnapshotFileRow,
        (SnapshotFileRow.snapshot_id, SnapshotFileRow.name),
        _in(SnapshotFileRow.snapshot_id, SnapshotRow.id, SnapshotRow.run_id),
    ),
    _rows(SnapshotRow, (SnapshotRow.id,), lambda run_id: SnapshotRow.run_id == run_id),
    _rows(ArtifactRow, (ArtifactRow.id,), lambda run_id: ArtifactRow.run_id == run_id),
    _rows(
        AttemptRunRow,
        (AttemptRunRow.attempt_id, AttemptRunRow.run_id),
        lambda run_id: AttemptRunRow.run_id == run_id,
    ),
    _rows(
        JobRunRow, (JobRunRow.job_id, JobRunRow.run_id), lambda run_id: JobRunRow.run_id == run_id
    ),
    _rows(RunRow, (RunRow.id,), lambda run_id: RunRow.id == run_id),
)
"""What belongs to a run, in the order in which it is removed; the run itself at the end."""

OF_ATTEMPT: Final[tuple[Remove, ...]] = (
    _rows(
        TelemetryBatchRow,
        (TelemetryBatchRow.attempt_id, TelemetryBatchRow.first_seq),
        lambda attempt_id: TelemetryBatchRow.attempt_id == attempt_id,
    ),
    _rows(AttemptRow, (AttemptRow.id,), lambda attempt_id: AttemptRow.id == attempt_id),
)
"""The rest of an attempt, once the runs are removed."""

OF_PROJECT: Final[tuple[Remove, ...]] = (
    _rows(JobRow, (JobRow.id,), lambda project_id: JobRow.project_id == project_id),
    _rows(
        SubmissionRow,
        (SubmissionRow.id,),
        lambda project_id: SubmissionRow.project_id == project_id,
    ),
    _rows(
        ExperimentRow,
        (ExperimentRow.project_id, ExperimentRow.id),
        lambda project_id: ExperimentRow.project_id == project_id,
    ),
    # The newest event stays: readers compare their cursors with its ID.
    _rows(
        EventRow,
        (EventRow.id,),
        lambda project_id: (
            (EventRow.project_id == project_id)
            & (EventRow.id < select(func.max(EventRow.id)).scalar_subquery())
        ),
    ),
    _rows(TokenRow, (TokenRow.id,), lambda project_id: TokenRow.project_id == project_id),
    _rows(
        MembershipRow,
        (MembershipRow.project_id, MembershipRow.user_id),
        lambda project_id: MembershipRow.project_id == project_id,
    ),
)
"""What belongs to the project itself, once its runs and attempts are removed."""


async def next_run(session: Session, project_id: str) -> str | None:
    """Returns the ID of a run of a project; `None` if none is left."""
    return await session.scalar(select(RunRow.id).where(RunRow.project_id == project_id).limit(1))


async def next_attempt(session: Session, project_id: str) -> str | None:
    """Returns the ID of an attempt of a project; `None` if none is left."""
    query = select(AttemptRow.id).where(AttemptRow.project_id == project_id)
    return await session.scalar(query.limit(1))


async def remove_blobs(session: Session, project_id: str, limit: int) -> list[str]:
    """Removes rows of blobs and returns their IDs.

    Their files may be deleted once that is committed.
    """
    return await _removed(session, BlobRow, (BlobRow.id,), BlobRow.project_id == project_id, limit)


async def service_accounts(session: Session, project_id: str) -> list[str]:
    """Returns the IDs of the project's service accounts."""
    query = select(UserRow.id).where(UserRow.service_project_id == project_id)
    return list(await session.scalars(query))


async def remove_project(session: Session, project_id: str) -> None:
    """Removes the row of a project that holds nothing any more."""
    await session.execute(delete(ProjectRow).where(ProjectRow.id == project_id))
