"""Snapshots: which one to load, when one counts as stored, and which are kept."""

from app.db.engine import Session
from app.db.models.snapshots import Snapshot
from app.db.repositories import snapshots as rows
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from palestra.contract.states import SnapshotState
from palestra.contract.work_order import SnapshotFileRef, SnapshotRef


async def newest_verified(session: Session, run_id: str) -> SnapshotRef | None:
    """Returns the newest stored snapshot of the run's history: what a training attempt resumes from; `None` begins afresh."""
    found = await rows.verified(session, run_id)
    return await _ref(session, found[0]) if found else None


async def resolve(session: Session, run_id: str, choice: str) -> SnapshotRef:
    """Returns the snapshot that `newest`, `best` or an id means now.

    Raises:
        NotFoundError: If the run has no snapshot with that id.
        ConflictError: If nothing is stored yet, or the snapshot's files were deleted or have not arrived.
    """
    if choice not in {"newest", "best"}:
        return await _ref(session, await _by_id(session, run_id, choice))
    found = await rows.verified(session, run_id)
    if not found:
        raise ConflictError("no_snapshot", "The run has no stored snapshot yet. Wait for its first one.", pointer="/evaluate/snapshot")
    if choice == "newest":
        return await _ref(session, found[0])
    scored = [snapshot for snapshot in found if snapshot.score is not None]
    if not scored:
        raise ConflictError("no_score", "No stored snapshot of the run has a score. Choose `newest`.", pointer="/evaluate/snapshot")
    return await _ref(session, max(scored, key=_rank))


def _rank(snapshot: Snapshot) -> tuple[float, int, int]:
    return (snapshot.score if snapshot.score is not None else float("-inf"), snapshot.env_step, snapshot.update)


async def _by_id(session: Session, run_id: str, snapshot_id: str) -> Snapshot:
    snapshot = await rows.find(session, snapshot_id)
    if snapshot is None or snapshot.run_id != run_id:
        raise NotFoundError("snapshot of this run")
    if snapshot.state == SnapshotState.DELETED:
        raise InvalidError("snapshot_deleted", "The files of that snapshot were deleted. Choose another.", pointer="/evaluate/snapshot")
    if snapshot.state != SnapshotState.VERIFIED:
        message = "That snapshot is still being uploaded. Wait until it is verified, or choose another."
        raise InvalidError("snapshot_unverified", message, pointer="/evaluate/snapshot")
    return snapshot


async def _ref(session: Session, snapshot: Snapshot) -> SnapshotRef:
    files = tuple(
        SnapshotFileRef(name=file.name, size=file.size, sha256=file.sha256, artifact_id=file.artifact_id)
        for file in await rows.files(session, [snapshot.id])
        if file.artifact_id is not None
    )
    return SnapshotRef(
        snapshot_id=snapshot.id,
        env_step=snapshot.env_step,
        update=snapshot.update,
        episode=snapshot.episode,
        resume_exact=snapshot.resume_exact,
        files=files,
    )
