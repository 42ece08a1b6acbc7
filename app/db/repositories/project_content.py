"""Removes the rows of a deleted project, a bounded number at a time, children before parents.

The remaining rows are the only record of a removal's progress, so an interrupted removal continues
with them. Rows of the audit log stay.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, exists, func, inspect, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from app.db.engine import Session
from app.db.models.access import TokenRow
from app.db.models.artifacts import ArtifactRow, BlobRow
from app.db.models.base import Base
from app.db.models.curves import (
    BlockRow,
    EpochBlockRow,
    EpochStatsRow,
    EvaluationRow,
    RollupRow,
    SeriesRow,
    TailRow,
    TelemetryBatchRow,
)
from app.db.models.events import EventRow
from app.db.models.experiments import ExperimentRow, RunRow, SubmissionRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow, JobRunRow
from app.db.models.logs import LogBlockRow, OpenLogLinesRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.models.saved_views import SavedViewRow
from app.db.models.snapshots import SnapshotFileRow, SnapshotRow
from app.db.models.summaries import (
    DefinitionMemberRow,
    FindingRow,
    RunSummaryRow,
    SeriesNameRow,
    SeriesSummaryRow,
    SetupRow,
    ThresholdCrossingRow,
    ThresholdRow,
)
from app.db.models.usage import QueueGroupRow
from app.db.repositories.artifacts import delete_blobs

Remove = Callable[[Session, str, int], Awaitable[int]]
"""Removes up to a number of rows that belong to an ID; returns how many it removed."""
Key = InstrumentedAttribute[Any]


def _make_remover(row: type[Base], belongs: Callable[[str], ColumnElement[bool]]) -> Remove:
    """Returns a function that removes rows of a table.

    Args:
        row: The table.
        belongs: Returns the condition that a row belongs to an ID.
    """

    async def remove(session: Session, owner: str, limit: int) -> int:
        return len(await _remove_some(session, row, belongs(owner), limit))

    return remove


async def _remove_some(
    session: Session, row: type[Base], belongs: ColumnElement[bool], limit: int
) -> list[Any]:
    """Removes at most a batch of rows; returns the first column of each row's primary key."""
    keys = inspect(row).primary_key
    chosen = select(*keys).where(belongs).limit(limit)
    statement = delete(row).where(tuple_(*keys).in_(chosen)).returning(keys[0])
    return list(await session.scalars(statement.execution_options(synchronize_session=False)))


def _has_value(column: Key) -> Callable[[str], ColumnElement[bool]]:
    """Returns the condition that a column holds an ID."""
    return lambda wanted: column == wanted


def _refers_to(column: Key, owned: Key, owner: Key) -> Callable[[str], ColumnElement[bool]]:
    """Returns the condition that a column refers to a row which belongs to an ID."""
    return lambda wanted: column.in_(select(owned).where(owner == wanted))


OF_RUN: Final[tuple[Remove, ...]] = (
    _make_remover(ThresholdCrossingRow, _has_value(ThresholdCrossingRow.run_id)),
    _make_remover(SeriesSummaryRow, _has_value(SeriesSummaryRow.run_id)),
    _make_remover(FindingRow, _has_value(FindingRow.run_id)),
    _make_remover(RunSummaryRow, _has_value(RunSummaryRow.run_id)),
    _make_remover(TailRow, _has_value(TailRow.run_id)),
    _make_remover(RollupRow, _refers_to(RollupRow.series_id, SeriesRow.id, SeriesRow.run_id)),
    _make_remover(BlockRow, _refers_to(BlockRow.series_id, SeriesRow.id, SeriesRow.run_id)),
    _make_remover(SeriesRow, _has_value(SeriesRow.run_id)),
    _make_remover(LogBlockRow, _has_value(LogBlockRow.run_id)),
    _make_remover(OpenLogLinesRow, _has_value(OpenLogLinesRow.run_id)),
    _make_remover(EpochStatsRow, _has_value(EpochStatsRow.run_id)),
    _make_remover(EpochBlockRow, _has_value(EpochBlockRow.run_id)),
    _make_remover(EvaluationRow, _has_value(EvaluationRow.run_id)),
    _make_remover(
        SnapshotFileRow, _refers_to(SnapshotFileRow.snapshot_id, SnapshotRow.id, SnapshotRow.run_id)
    ),
    _make_remover(SnapshotRow, _has_value(SnapshotRow.run_id)),
    _make_remover(ArtifactRow, _has_value(ArtifactRow.run_id)),
    _make_remover(AttemptRunRow, _has_value(AttemptRunRow.run_id)),
    _make_remover(JobRunRow, _has_value(JobRunRow.run_id)),
    _make_remover(RunRow, _has_value(RunRow.id)),
)
"""What belongs to a run, in the order in which it is removed; the run itself at the end."""

OF_ATTEMPT: Final[tuple[Remove, ...]] = (
    _make_remover(TelemetryBatchRow, _has_value(TelemetryBatchRow.attempt_id)),
    _make_remover(AttemptRow, _has_value(AttemptRow.id)),
)
"""The rest of an attempt, once the runs are removed."""

OF_PROJECT: Final[tuple[Remove, ...]] = (
    _make_remover(JobRow, _has_value(JobRow.project_id)),
    _make_remover(SubmissionRow, _has_value(SubmissionRow.project_id)),
    _make_remover(DefinitionMemberRow, _has_value(DefinitionMemberRow.project_id)),
    _make_remover(ExperimentRow, _has_value(ExperimentRow.project_id)),
    _make_remover(ThresholdRow, _has_value(ThresholdRow.project_id)),
    _make_remover(SetupRow, _has_value(SetupRow.project_id)),
    # Names that no run has any more, so that those of removed runs are not kept.
    _make_remover(
        SeriesNameRow,
        lambda _: ~exists().where(SeriesSummaryRow.name_id == SeriesNameRow.id),
    ),
    # The newest event stays: readers compare their cursors with its ID.
    _make_remover(
        EventRow,
        lambda project_id: (
            (EventRow.project_id == project_id)
            & (EventRow.id < select(func.max(EventRow.id)).scalar_subquery())
        ),
    ),
    _make_remover(SavedViewRow, _has_value(SavedViewRow.project_id)),
    _make_remover(TokenRow, _has_value(TokenRow.project_id)),
    _make_remover(MembershipRow, _has_value(MembershipRow.project_id)),
    _make_remover(QueueGroupRow, _has_value(QueueGroupRow.project_id)),
)
"""What belongs to the project itself, once its runs and attempts are removed."""


async def find_next_run(session: Session, project_id: str) -> str | None:
    """Returns the ID of a run of a project; `None` if none is left."""
    return await session.scalar(select(RunRow.id).where(RunRow.project_id == project_id).limit(1))


async def find_next_attempt(session: Session, project_id: str) -> str | None:
    """Returns the ID of an attempt of a project; `None` if none is left."""
    query = select(AttemptRow.id).where(AttemptRow.project_id == project_id)
    return await session.scalar(query.limit(1))


async def remove_blobs(session: Session, project_id: str, limit: int) -> list[str]:
    """Removes rows of blobs and returns their IDs.

    The project's row is locked. The files may be deleted once that is committed.
    """
    chosen = select(BlobRow.id).where(BlobRow.project_id == project_id).limit(limit)
    return await delete_blobs(session, BlobRow.id.in_(chosen))


async def list_service_accounts(session: Session, project_id: str) -> list[str]:
    """Returns the IDs of the project's service accounts."""
    query = select(UserRow.id).where(UserRow.service_project_id == project_id)
    return list(await session.scalars(query))


async def remove_project(session: Session, project_id: str) -> None:
    """Removes the row of a project that holds nothing any more."""
    await session.execute(delete(ProjectRow).where(ProjectRow.id == project_id))
