"""Snapshots, their files, and the fence chain that they make."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import and_, func, insert, select, update
from sqlalchemy.orm import InstrumentedAttribute, aliased

from app.db.clock import db_now
from app.db.engine import Session
from app.db.list_parameters import is_listed
from app.db.models.artifacts import ArtifactRow
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.models.snapshots import SnapshotFileRow, SnapshotRow
from app.db.prepared import Read, fetch_all
from app.db.repositories.keyset_pages import select_page
from app.domain.paging import Keyset
from palestra.contract.names import EvaluationSource
from palestra.contract.states import LIVE_ATTEMPT_STATES, SnapshotState

_NEWEST_FIRST = (
    SnapshotRow.fence.desc(),
    SnapshotRow.env_step.desc(),
    SnapshotRow.update.desc(),
    SnapshotRow.seq.desc(),
)
COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": SnapshotRow.created_at,
    "env_step": SnapshotRow.env_step,
}


async def find(session: Session, snapshot_id: str, *, lock: bool = False) -> SnapshotRow | None:
    """Returns a snapshot, locked against other writers on request."""
    query = select(SnapshotRow).where(SnapshotRow.id == snapshot_id)
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    return (await session.scalars(query)).one_or_none()


async def filter_existing(session: Session, snapshot_ids: Collection[str]) -> set[str]:
    """Returns the IDs of those snapshots that exist."""
    return set(
        await session.scalars(select(SnapshotRow.id).where(SnapshotRow.id.in_(snapshot_ids)))
    )


async def list_for_run(session: Session, run_id: str) -> Sequence[SnapshotRow]:
    """Returns a run's snapshots, newest first."""
    return (
        await session.scalars(
            select(SnapshotRow).where(SnapshotRow.run_id == run_id).order_by(*_NEWEST_FIRST)
        )
    ).all()


async def list_page(session: Session, run_id: str, keys: Keyset) -> Sequence[SnapshotRow]:
    """Returns a page of a run's snapshots and one row more."""
    return (
        await session.scalars(
            select_page(
                select(SnapshotRow).where(SnapshotRow.run_id == run_id),
                keys,
                COLUMNS,
                SnapshotRow.id,
            )
        )
    ).all()


async def add(
    session: Session, row: Mapping[str, Any], files: Sequence[Mapping[str, Any]]
) -> SnapshotRow:
    """Adds a snapshot and its files."""
    snapshot = SnapshotRow(**row)
    session.add(snapshot)
    await session.flush()
    await session.execute(
        insert(SnapshotFileRow), [{**file, "snapshot_id": snapshot.id} for file in files]
    )
    await session.refresh(snapshot)
    return snapshot


async def attach(session: Session, snapshot_id: str, artifact: ArtifactRow) -> None:
    """Stores which artifact holds a file, if name, size and hash match the snapshot's record."""
    same = (
        SnapshotFileRow.name == artifact.name,
        SnapshotFileRow.size == artifact.size,
        SnapshotFileRow.sha256 == artifact.sha256,
    )
    await session.execute(
        update(SnapshotFileRow)
        .where(SnapshotFileRow.snapshot_id == snapshot_id, *same)
        .values(artifact_id=artifact.id)
    )


async def list_verified(
    session: Session, run_id: str, *, superseded: bool = False
) -> Sequence[SnapshotRow]:
    """Returns the verified snapshots of the run's history, newest first.

    Superseded ones are included on request.
    """
    query = select(SnapshotRow).where(
        SnapshotRow.run_id == run_id, SnapshotRow.state == SnapshotState.VERIFIED
    )
    query = query if superseded else query.where(SnapshotRow.superseded.is_(False))
    return (await session.scalars(query.order_by(*_NEWEST_FIRST))).all()


async def list_uploading(session: Session, run_id: str) -> Sequence[SnapshotRow]:
    """Returns the snapshots of a run whose files have not all arrived."""
    query = select(SnapshotRow).where(
        SnapshotRow.run_id == run_id, SnapshotRow.state == SnapshotState.UPLOADING
    )
    return (await session.scalars(query)).all()


async def list_uploading_for_attempt(session: Session, attempt_id: str) -> Sequence[SnapshotRow]:
    """Returns the snapshots of an attempt whose files have not all arrived."""
    query = select(SnapshotRow).where(
        SnapshotRow.attempt_id == attempt_id, SnapshotRow.state == SnapshotState.UPLOADING
    )
    return (await session.scalars(query)).all()


async def list_runs(session: Session, snapshots: Collection[SnapshotRow]) -> Sequence[RunRow]:
    """Returns the runs to which the given snapshots belong."""
    ids = {snapshot.run_id for snapshot in snapshots}
    return (
        (await session.scalars(select(RunRow).where(RunRow.id.in_(ids)).order_by(RunRow.id))).all()
        if ids
        else []
    )


def sort_newest_first(snapshots: Collection[SnapshotRow]) -> list[SnapshotRow]:
    """Returns snapshots of one run in the order of `verified`."""
    return sorted(
        snapshots, key=lambda one: (one.fence, one.env_step, one.update, one.seq), reverse=True
    )


async def list_files(session: Session, snapshot_ids: Collection[str]) -> Sequence[SnapshotFileRow]:
    """Returns the files of the given snapshots, by name."""
    query = (
        select(SnapshotFileRow)
        .where(SnapshotFileRow.snapshot_id.in_(snapshot_ids))
        .order_by(SnapshotFileRow.snapshot_id, SnapshotFileRow.name)
    )
    return (await session.scalars(query)).all()


async def count_missing_files(session: Session, snapshot_id: str) -> int:
    """Returns how many files of a snapshot are not stored yet."""
    query = select(func.count()).where(
        SnapshotFileRow.snapshot_id == snapshot_id, SnapshotFileRow.artifact_id.is_(None)
    )
    return (await session.scalar(query.select_from(SnapshotFileRow))) or 0


async def mark_verified(session: Session, snapshot: SnapshotRow) -> None:
    """Marks a snapshot as verified: all its files are stored."""
    snapshot.state = SnapshotState.VERIFIED
    await session.flush()
    await session.execute(
        update(SnapshotRow).where(SnapshotRow.id == snapshot.id).values(verified_at=db_now())
    )


def set_state(snapshot: SnapshotRow, state: SnapshotState) -> None:
    """Sets the state of a snapshot."""
    snapshot.state = state


def set_superseded(row: SnapshotRow | EvaluationRow, *, superseded: bool) -> None:
    """Sets whether a snapshot or an evaluation is no part of its run's history."""
    row.superseded = superseded


async def load_ids_in_use(session: Session, run_id: str) -> set[str]:
    """Returns the snapshots of a run that live attempts read."""
    query = select(AttemptRunRow.snapshot_id).join(
        AttemptRow, AttemptRow.id == AttemptRunRow.attempt_id
    )
    rows = await session.scalars(
        query.where(
            AttemptRunRow.run_id == run_id,
            AttemptRunRow.snapshot_id.is_not(None),
            AttemptRow.state.in_(LIVE_ATTEMPT_STATES),
        )
    )
    return {row for row in rows if row is not None}


async def list_links(
    session: Session, run_ids: Collection[str]
) -> Sequence[tuple[str, int, int | None, int | None, int | None]]:
    """Returns a row for every training attempt of a run.

    Columns: run, fence, fence resumed from, and env_step and update of the snapshot resumed from.
    """
    (found,) = await fetch_all(session, [Read(_select_links(), {"ids": run_ids})])
    return [tuple(row) for row in found]


@cache
def _select_links() -> Any:
    source = aliased(SnapshotRow)
    return (
        select(
            AttemptRunRow.run_id,
            AttemptRunRow.fence,
            source.fence.label("resumed"),
            source.env_step,
            source.update,
        )
        .outerjoin(
            source,
            and_(source.id == AttemptRunRow.snapshot_id, source.run_id == AttemptRunRow.run_id),
        )
        .where(is_listed(AttemptRunRow.run_id), AttemptRunRow.training)
    )


async def list_training_evaluations(session: Session, run_id: str) -> Sequence[EvaluationRow]:
    """Returns a run's evaluations that were made during training.

    Evaluations of tests are not part of its history.
    """
    mine = (
        EvaluationRow.run_id == run_id,
        EvaluationRow.snapshot_id.is_(None),
        EvaluationRow.source == EvaluationSource.EVALUATION,
    )
    return (await session.scalars(select(EvaluationRow).where(*mine))).all()


async def list_snapshot_evaluations(session: Session, snapshot_id: str) -> Sequence[EvaluationRow]:
    """Returns the evaluations that jobs made of a snapshot."""
    return (
        await session.scalars(select(EvaluationRow).where(EvaluationRow.snapshot_id == snapshot_id))
    ).all()


async def find_definition(session: Session, run_id: str) -> str | None:
    """Returns the definition of a run's experiment, as stored."""
    query = select(ExperimentRow.definition).join(
        RunRow,
        and_(
            RunRow.project_id == ExperimentRow.project_id, RunRow.experiment_id == ExperimentRow.id
        ),
    )
    return (await session.scalar(query.where(RunRow.id == run_id))) or None


async def drop_files(session: Session, snapshot_id: str) -> Sequence[ArtifactRow]:
    """Clears the artifacts of a snapshot's file rows and returns those artifacts."""
    rows = (
        await session.scalars(select(ArtifactRow).where(ArtifactRow.folder == snapshot_id))
    ).all()
    await session.execute(
        update(SnapshotFileRow)
        .where(SnapshotFileRow.snapshot_id == snapshot_id)
        .values(artifact_id=None)
    )
    return rows


async def filter_superseded(
    session: Session, run_id: str, snapshot_ids: Collection[str]
) -> set[str]:
    """Returns the given snapshots of a run that are superseded."""
    query = select(SnapshotRow.id).where(
        SnapshotRow.run_id == run_id, SnapshotRow.id.in_(snapshot_ids), SnapshotRow.superseded
    )
    return set(await session.scalars(query)) if snapshot_ids else set()


async def find_resume_source(session: Session, run_id: str, fence: int) -> SnapshotRow | None:
    """Returns the snapshot that a training attempt of a run resumed from."""
    query = select(SnapshotRow).join(AttemptRunRow, AttemptRunRow.snapshot_id == SnapshotRow.id)
    return (
        await session.scalars(
            query.where(
                AttemptRunRow.run_id == run_id, AttemptRunRow.fence == fence, AttemptRunRow.training
            )
        )
    ).first()
