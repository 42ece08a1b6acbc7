"""Moves an experiment with all that belongs to it to another project.

An experiment is identified by its project and its ID, so the row is written anew; the rows below it
are re-pointed. Blobs belong to a project, which stores equal content once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, exists, insert, select, update
from sqlalchemy.orm import aliased

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.artifacts import ArtifactRow, BlobRow
from app.db.models.base import Base
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import ExperimentRow, RunRow, SubmissionRow
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.snapshots import SnapshotRow
from app.db.models.summaries import DefinitionMemberRow
from app.db.repositories import summaries
from app.db.repositories.projects import add_storage
from app.db.upsert import insert_new


@dataclass(frozen=True, slots=True)
class MovedBlob:
    """A blob that artifacts of a moved experiment refer to."""

    id: str
    sha256: str
    size: int
    is_shared: bool
    """Whether an artifact of another experiment refers to it too."""


async def lock(session: Session, project_id: str, experiment_id: str) -> ExperimentRow | None:
    """Returns an experiment, locked: nothing can be submitted to it until the transaction ends."""
    query = select(ExperimentRow).where(
        ExperimentRow.project_id == project_id, ExperimentRow.id == experiment_id
    )
    return await session.scalar(query.with_for_update().execution_options(populate_existing=True))


async def insert_copy(session: Session, experiment: ExperimentRow, to: str) -> bool:
    """Adds the row of an experiment to another project.

    Returns false if that project has an experiment of this ID or with this definition. Waits for an
    open transaction that inserts one.
    """
    values = {column.key: getattr(experiment, column.key) for column in ExperimentRow.__table__.c}
    statement = insert_new(session, ExperimentRow, [{**values, "project_id": to}])
    return (await session.execute(statement.returning(ExperimentRow.id))).first() is not None


async def move_rows(session: Session, experiment: ExperimentRow, to: str) -> ExperimentRow:
    """Makes all rows that belong to an experiment refer to its copy in another project.

    Events stay: they describe what happened in the former project.

    Returns:
        The copy; the experiment is deleted.
    """
    source, experiment_id = experiment.project_id, experiment.id
    runs = _select_ids(RunRow, source, experiment_id)
    jobs = _select_ids(JobRow, source, experiment_id)
    await _set_project(session, SubmissionRow, _is_of(SubmissionRow, source, experiment_id), to)
    for of_run in (ArtifactRow, SnapshotRow, EvaluationRow):
        await _set_project(session, of_run, of_run.run_id.in_(runs), to)
    await _set_project(session, AttemptRow, AttemptRow.job_id.in_(jobs), to)
    for row in (RunRow, JobRow):
        await _set_project(session, row, _is_of(row, source, experiment_id), to)
    members = _is_of(DefinitionMemberRow, source, experiment_id)
    await _set_project(session, DefinitionMemberRow, members, to)
    moved = _select_ids(RunRow, to, experiment_id)
    setup_id = await summaries.find_setup(session, to, experiment.agent, experiment.env)
    await summaries.move(session, moved, setup_id)
    await session.execute(
        delete(ExperimentRow)
        .where(ExperimentRow.project_id == source, ExperimentRow.id == experiment_id)
        .execution_options(synchronize_session=False)
    )
    session.expire_all()
    copy = await session.get(ExperimentRow, (to, experiment_id), populate_existing=True)
    assert copy is not None
    return copy


def _is_of(row: Any, project_id: str, experiment_id: str) -> Any:
    return (row.project_id == project_id) & (row.experiment_id == experiment_id)


def _select_ids(row: Any, project_id: str, experiment_id: str) -> Select[Any]:
    return select(row.id).where(_is_of(row, project_id, experiment_id))


async def _set_project(session: Session, row: type[Base], which: Any, to: str) -> None:
    statement = update(row).where(which).values(project_id=to)
    await session.execute(statement.execution_options(synchronize_session=False))


async def lock_blobs(session: Session, experiment: ExperimentRow) -> list[MovedBlob]:
    """Returns the blobs of an experiment, locked so that no upload refers to them meanwhile."""
    runs = _select_ids(RunRow, experiment.project_id, experiment.id)
    used = select(ArtifactRow.blob_id).where(ArtifactRow.run_id.in_(runs))
    query = select(BlobRow).where(BlobRow.id.in_(used)).order_by(BlobRow.id).with_for_update()
    found = (await session.scalars(query)).all()
    by_other = (ArtifactRow.blob_id == BlobRow.id, ArtifactRow.run_id.not_in(runs))
    shared = set(
        await session.scalars(
            select(BlobRow.id).where(BlobRow.id.in_(used), exists().where(*by_other))
        )
    )
    return [MovedBlob(row.id, row.sha256, row.size, row.id in shared) for row in found]


async def filter_stored(
    session: Session, project_id: str, moved: Sequence[MovedBlob]
) -> set[tuple[str, int]]:
    """Returns the hashes and sizes of the blobs whose content a project stores already.

    The project's own blobs are locked, so that the sweep cannot delete them.
    """
    if not moved:
        return set()
    query = (
        select(BlobRow.sha256, BlobRow.size)
        .where(
            BlobRow.project_id == project_id,
            is_any_of(BlobRow.sha256, [blob.sha256 for blob in moved]),
        )
        .with_for_update(read=True, key_share=True)
    )
    return {(sha256, size) for sha256, size in await session.execute(query)}


async def move_blobs(session: Session, moved: Sequence[MovedBlob], source: str, to: str) -> None:
    """Gives blobs to another project; both projects are locked."""
    if not moved:
        return
    await _set_project(session, BlobRow, is_any_of(BlobRow.id, [blob.id for blob in moved]), to)
    size = sum(blob.size for blob in moved)
    await add_storage(session, source, -size)
    await add_storage(session, to, size)


async def add_copies(session: Session, copies: Mapping[str, MovedBlob], project_id: str) -> None:
    """Adds rows of blobs that are copies of other blobs, by new ID; the files exist already."""
    rows = [
        {"id": blob_id, "project_id": project_id, "sha256": blob.sha256, "size": blob.size}
        for blob_id, blob in copies.items()
    ]
    if rows:
        await session.execute(insert(BlobRow), rows)
        await add_storage(session, project_id, sum(blob.size for blob in copies.values()))


async def refer_to_blobs_of(session: Session, experiment: ExperimentRow, project_id: str) -> None:
    """Makes the artifacts of an experiment refer to a project's blobs of the same content."""
    runs = _select_ids(RunRow, experiment.project_id, experiment.id)
    former, new = aliased(BlobRow), aliased(BlobRow)
    equal = (new.sha256 == former.sha256, new.size == former.size, new.project_id == project_id)
    found = select(new.id).where(former.id == ArtifactRow.blob_id, *equal)
    of_source = select(BlobRow.id).where(BlobRow.project_id == experiment.project_id)
    statement = (
        update(ArtifactRow)
        .where(ArtifactRow.run_id.in_(runs), ArtifactRow.blob_id.in_(of_source))
        .values(blob_id=found.correlate(ArtifactRow).scalar_subquery())
    )
    await session.execute(statement.execution_options(synchronize_session=False))
