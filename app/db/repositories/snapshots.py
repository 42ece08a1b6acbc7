"""Snapshots, their files, and the fence chain that they make."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import and_, case, func, insert, select, update
from sqlalchemy.orm import InstrumentedAttribute, aliased

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.artifacts import Artifact
from app.db.models.curves import Evaluation
from app.db.models.experiments import Experiment, Run
from app.db.models.jobs import Attempt, AttemptRun
from app.db.models.snapshots import Snapshot, SnapshotFile
from app.db.repositories.keysets import paged
from app.domain.paging import Keyset
from palestra.contract.names import EvaluationSource
from palestra.contract.states import AttemptState, SnapshotState

_NEWEST_FIRST = (Snapshot.fence.desc(), Snapshot.env_step.desc(), Snapshot.update.desc(), Snapshot.seq.desc())
COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {"created_at": Snapshot.created_at, "env_step": Snapshot.env_step}
_LIVE = (AttemptState.STARTING.value, AttemptState.RUNNING.value)


async def find(session: Session, snapshot_id: str, *, lock: bool = False) -> Snapshot | None:
    """Returns a snapshot, locked against other writers on request."""
    query = select(Snapshot).where(Snapshot.id == snapshot_id)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def of_run(session: Session, run_id: str) -> Sequence[Snapshot]:
    """Returns a run's snapshots, newest first."""
    return (await session.scalars(select(Snapshot).where(Snapshot.run_id == run_id).order_by(*_NEWEST_FIRST))).all()


async def page(session: Session, run_id: str, keys: Keyset) -> Sequence[Snapshot]:
    """Returns a page of a run's snapshots and one row more."""
    return (await session.scalars(paged(select(Snapshot).where(Snapshot.run_id == run_id), keys, COLUMNS, Snapshot.id))).all()


async def add(session: Session, row: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> Snapshot:
    """Adds a snapshot and its files."""
    snapshot = Snapshot(**row)
    session.add(snapshot)
    await session.flush()
    await session.execute(insert(SnapshotFile), [{**file, "snapshot_id": snapshot.id} for file in files])
    await session.refresh(snapshot)
    return snapshot


async def attach(session: Session, snapshot_id: str, artifact: Artifact) -> None:
    """Writes which artifact holds a file, if name, size and hash are those of the snapshot's record."""
    same = (SnapshotFile.name == artifact.name, SnapshotFile.size == artifact.size, SnapshotFile.sha256 == artifact.sha256)
    await session.execute(update(SnapshotFile).where(SnapshotFile.snapshot_id == snapshot_id, *same).values(artifact_id=artifact.id))


async def verified(session: Session, run_id: str, *, superseded: bool = False) -> Sequence[Snapshot]:
    """Returns the verified snapshots that count in the run's history, newest first; superseded ones among them on request."""
    query = select(Snapshot).where(Snapshot.run_id == run_id, Snapshot.state == SnapshotState.VERIFIED.value)
    query = query if superseded else query.where(Snapshot.superseded.is_(False))
    return (await session.scalars(query.order_by(*_NEWEST_FIRST))).all()


async def uploading(session: Session, run_id: str) -> Sequence[Snapshot]:
    """Returns the snapshots of a run whose files have not all arrived."""
    query = select(Snapshot).where(Snapshot.run_id == run_id, Snapshot.state == SnapshotState.UPLOADING.value)
    return (await session.scalars(query)).all()


async def uploading_of(session: Session, attempt_id: str) -> Sequence[Snapshot]:
    """Returns the snapshots of an attempt whose files have not all arrived."""
    query = select(Snapshot).where(Snapshot.attempt_id == attempt_id, Snapshot.state == SnapshotState.UPLOADING.value)
    return (await session.scalars(query)).all()


async def runs_of(session: Session, snapshots: Collection[Snapshot]) -> Sequence[Run]:
    """Returns the runs of some snapshots."""
    ids = {snapshot.run_id for snapshot in snapshots}
    return (await session.scalars(select(Run).where(Run.id.in_(ids)).order_by(Run.id))).all() if ids else []


def newest_first(snapshots: Collection[Snapshot]) -> list[Snapshot]:
    """Returns snapshots of one run in the order of `verified`."""
    return sorted(snapshots, key=lambda one: (one.fence, one.env_step, one.update, one.seq), reverse=True)


async def progress(session: Session, run_ids: Collection[str]) -> dict[str, tuple[int | None, int | None]]:
    """Returns the env_step of the newest snapshot of each run's history, stored or not, and that of the newest stored one."""
    stored = func.max(case((Snapshot.state == SnapshotState.VERIFIED.value, Snapshot.env_step)))
    mine = (Snapshot.run_id.in_(run_ids), Snapshot.superseded.is_(False))
    rows = await session.execute(select(Snapshot.run_id, func.max(Snapshot.env_step), stored).where(*mine).group_by(Snapshot.run_id))
    return {run_id: (written, verified) for run_id, written, verified in rows}


async def files(session: Session, snapshot_ids: Collection[str]) -> Sequence[SnapshotFile]:
    """Returns the files of some snapshots, by name."""
    query = select(SnapshotFile).where(SnapshotFile.snapshot_id.in_(snapshot_ids)).order_by(SnapshotFile.snapshot_id, SnapshotFile.name)
    return (await session.scalars(query)).all()


async def missing_files(session: Session, snapshot_id: str) -> int:
    """Returns how many files of a snapshot are not stored yet."""
    query = select(func.count()).where(SnapshotFile.snapshot_id == snapshot_id, SnapshotFile.artifact_id.is_(None))
    return (await session.scalar(query.select_from(SnapshotFile))) or 0


async def mark_verified(session: Session, snapshot: Snapshot) -> None:
    """Writes that all files are stored."""
    snapshot.state = SnapshotState.VERIFIED.value
    await session.flush()
    await session.execute(update(Snapshot).where(Snapshot.id == snapshot.id).values(verified_at=db_now()))


async def in_use(session: Session, run_id: str) -> set[str]:
    """Returns the snapshots of a run that a live attempt loads."""
    query = select(AttemptRun.snapshot_id).join(Attempt, Attempt.id == AttemptRun.attempt_id)
    rows = await session.scalars(query.where(AttemptRun.run_id == run_id, AttemptRun.snapshot_id.is_not(None), Attempt.state.in_(_LIVE)))
    return {row for row in rows if row is not None}


async def links(session: Session, run_ids: Collection[str]) -> Sequence[tuple[str, int, int | None, int | None, int | None]]:
    """Returns (run, fence, fence resumed from, env_step, update of that snapshot) of every training attempt."""
    source = aliased(Snapshot)
    query = (
        select(AttemptRun.run_id, AttemptRun.fence, source.fence, source.env_step, source.update)
        .outerjoin(source, and_(source.id == AttemptRun.snapshot_id, source.run_id == AttemptRun.run_id))
        .where(AttemptRun.run_id.in_(run_ids), AttemptRun.training)
    )
    return [(run, fence, resumed, step, count) for run, fence, resumed, step, count in await session.execute(query)]


async def training_evaluations(session: Session, run_id: str) -> Sequence[Evaluation]:
    """Returns a run's evaluations that were made during training; those of tests are no part of its history."""
    mine = (Evaluation.run_id == run_id, Evaluation.snapshot_id.is_(None), Evaluation.source == EvaluationSource.EVALUATION.value)
    return (await session.scalars(select(Evaluation).where(*mine))).all()


async def snapshot_evaluations(session: Session, snapshot_id: str) -> Sequence[Evaluation]:
    """Returns the evaluations of a snapshot."""
    return (await session.scalars(select(Evaluation).where(Evaluation.snapshot_id == snapshot_id))).all()


async def definition_of(session: Session, run_id: str) -> str | None:
    """Returns the definition of a run's experiment, as stored."""
    query = select(Experiment.definition).join(Run, and_(Run.project_id == Experiment.project_id, Run.experiment_id == Experiment.id))
    return (await session.scalar(query.where(Run.id == run_id))) or None


async def drop_files(session: Session, snapshot_id: str) -> Sequence[Artifact]:
    """Takes a snapshot's files off its rows and returns the artifacts that held them."""
    rows = (await session.scalars(select(Artifact).where(Artifact.folder == snapshot_id))).all()
    await session.execute(update(SnapshotFile).where(SnapshotFile.snapshot_id == snapshot_id).values(artifact_id=None))
    return rows


async def superseded_among(session: Session, run_id: str, snapshot_ids: Collection[str]) -> set[str]:
    """Returns which of some snapshots of a run are superseded."""
    query = select(Snapshot.id).where(Snapshot.run_id == run_id, Snapshot.id.in_(snapshot_ids), Snapshot.superseded)
    return set(await session.scalars(query)) if snapshot_ids else set()


async def resumed_from(session: Session, run_id: str, fence: int) -> Snapshot | None:
    """Returns the snapshot that a training attempt of a run resumed from."""
    query = select(Snapshot).join(AttemptRun, AttemptRun.snapshot_id == Snapshot.id)
    return (await session.scalars(query.where(AttemptRun.run_id == run_id, AttemptRun.fence == fence, AttemptRun.training))).first()
