"""Snapshots: which one to load, when one counts as stored, and which are kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.db.engine import Session
from app.db.models.artifacts import ArtifactRow
from app.db.models.snapshots import SnapshotFileRow, SnapshotRow
from app.db.repositories import artifacts as artifact_rows
from app.db.repositories import snapshots as rows
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.events import event_log
from app.services.runs import runs
from app.services.views import pages
from palestra.contract.definition import Retention
from palestra.contract.resources import SnapshotFileView, SnapshotView
from palestra.contract.retention import is_replaced
from palestra.contract.states import SnapshotState
from palestra.contract.telemetry import SnapshotWritten, write_number
from palestra.contract.upgrade import load_definition
from palestra.contract.views import Page
from palestra.contract.work_order import SnapshotFileRef, SnapshotRef


class SnapshotRun(Protocol):
    """The IDs of the run that a snapshot belongs to."""

    @property
    def id(self) -> str:
        """ID of the run."""

    @property
    def project_id(self) -> str:
        """ID of its project."""

    @property
    def experiment_id(self) -> str:
        """ID of its experiment."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The run, attempt, fence and record from which a snapshot was reported."""

    run: SnapshotRun
    attempt_id: str
    fence: int
    seq: int


async def find_newest_verified(session: Session, run_id: str) -> SnapshotRef | None:
    """Returns the newest stored snapshot of the run's history, which a training attempt resumes.

    `None` starts the training from the beginning.
    """
    found = await rows.list_verified(session, run_id)
    return await make_reference(session, found[0]) if found else None


async def resolve(session: Session, run_id: str, choice: str) -> SnapshotRef:
    """Returns the snapshot that `newest`, `best` or an ID currently denotes.

    Raises:
        NotFoundError: If the run has no snapshot with that ID.
        ConflictError: If the run has no stored snapshot, or the files of the snapshot were deleted
            or have not arrived.
    """
    if choice not in {"newest", "best"}:
        return await make_reference(session, await _by_id(session, run_id, choice))
    found = await rows.list_verified(session, run_id)
    if not found:
        raise ConflictError(
            "no_snapshot",
            "The run has no stored snapshot yet. Wait for its first one.",
            pointer="/evaluate/snapshot",
        )
    if choice == "newest":
        return await make_reference(session, found[0])
    best = _best(found)
    if best is None:
        raise ConflictError(
            "no_score",
            "No stored snapshot of the run has a score. Choose `newest`.",
            pointer="/evaluate/snapshot",
        )
    return await make_reference(session, best)


async def find_verified(session: Session, run_id: str, snapshot_id: str) -> SnapshotRef:
    """Returns a verified snapshot of a run, with its files.

    Raises:
        NotFoundError: If the run has none of that ID.
    """
    snapshot = await rows.find(session, snapshot_id)
    if snapshot is None or snapshot.run_id != run_id or snapshot.state != SnapshotState.VERIFIED:
        raise NotFoundError("stored snapshot of this run")
    return await make_reference(session, snapshot)


async def make_reference(session: Session, snapshot: SnapshotRow) -> SnapshotRef:
    """Returns the reference by which a worker downloads a verified snapshot."""
    files = tuple(
        SnapshotFileRef(
            name=file.name, size=file.size, sha256=file.sha256, artifact_id=file.artifact_id
        )
        for file in await rows.list_files(session, [snapshot.id])
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


async def list_for_run(
    session: Session, principal: Principal, run_id: str, request: PageRequest
) -> Page[SnapshotView]:
    """Returns a page of a run's snapshots. Sorts by `created_at` and `env_step`.

    Raises:
        NotFoundError: If the project has no such run.
    """
    run = await runs.find(session, principal, run_id)
    keys = build_keyset(request, rows.COLUMNS)

    async def shown(found: Sequence[SnapshotRow]) -> list[SnapshotView]:
        return await build_views(session, run.id, found)

    return await pages.cut(await rows.list_page(session, run.id, keys), request, keys, shown)


async def build_views(
    session: Session, run_id: str, found: Sequence[SnapshotRow]
) -> list[SnapshotView]:
    """Returns the public form of snapshots of a run."""
    verified = await rows.list_verified(session, run_id)
    newest, best = verified[0].id if verified else None, _best(verified)
    files: dict[str, list[SnapshotFileRow]] = {snapshot.id: [] for snapshot in found}
    for file in await rows.list_files(session, list(files)):
        files[file.snapshot_id].append(file)
    return [
        _view(
            snapshot,
            files[snapshot.id],
            newest=snapshot.id == newest,
            best=best is not None and snapshot.id == best.id,
        )
        for snapshot in found
    ]


async def add_written(session: Session, origin: Origin, record: SnapshotWritten) -> None:
    """Adds a snapshot that is complete on its worker.

    The snapshot becomes verified once all its files are stored on the server.
    """
    snapshot = await rows.add(
        session, _row(origin, record), [file.model_dump() for file in record.files]
    )
    for artifact in await artifact_rows.list_for_folder(session, snapshot.id):
        await _attach(session, snapshot, artifact)
    await _settle(session, origin.run, snapshot)


async def attach_file(session: Session, run: SnapshotRun, artifact: ArtifactRow) -> None:
    """Attaches a stored artifact to the snapshot that it belongs to.

    The last artifact makes the snapshot verified. An artifact that arrives before the snapshot's
    record is attached when the record arrives.
    """
    snapshot = await rows.find(session, artifact.folder, lock=True)
    if (
        snapshot is not None
        and snapshot.run_id == run.id
        and snapshot.state == SnapshotState.UPLOADING
    ):
        await _attach(session, snapshot, artifact)
        await _settle(session, run, snapshot)


async def find_expected_file(
    session: Session, snapshot_id: str, name: str
) -> tuple[SnapshotRow | None, SnapshotFileRow | None]:
    """Returns a snapshot and one of its files; `None` for each that does not exist."""
    snapshot = await rows.find(session, snapshot_id)
    files = [] if snapshot is None else await rows.list_files(session, [snapshot_id])
    return snapshot, next((file for file in files if file.name == name), None)


async def _attach(session: Session, snapshot: SnapshotRow, artifact: ArtifactRow) -> None:
    if artifact.blob_id is not None and artifact.attempt_id == snapshot.attempt_id:
        await rows.attach(session, snapshot.id, artifact)


async def _settle(session: Session, run: SnapshotRun, snapshot: SnapshotRow) -> None:
    if await rows.count_missing_files(session, snapshot.id) == 0:
        await rows.mark_verified(session, snapshot)
        await _apply_retention(session, run)
    await _record_changed(session, run, [snapshot])


async def skip_rest(session: Session, attempt_id: str) -> None:
    """Marks the snapshots that an ended attempt did not upload as skipped."""
    left = await rows.list_uploading_for_attempt(session, attempt_id)
    for run in await rows.list_runs(session, left):
        await _leave_out(session, run, [snapshot for snapshot in left if snapshot.run_id == run.id])


async def _leave_out(session: Session, run: SnapshotRun, unwanted: Sequence[SnapshotRow]) -> None:
    for snapshot in unwanted:
        rows.set_state(snapshot, SnapshotState.SKIPPED)
        await artifact_rows.delete(session, await rows.drop_files(session, snapshot.id))
    await _record_changed(session, run, unwanted)


async def _apply_retention(session: Session, run: SnapshotRun) -> None:
    """Deletes the files of verified snapshots that the definition's retention rule does not keep.

    Called after a newer snapshot was verified.

    A snapshot that is not uploaded yet, and would then be deleted, is marked as skipped, so that
    its worker does not upload it.
    """
    raw = await rows.find_definition(session, run.id)
    rule = Retention() if raw is None else load_definition(raw).snapshot
    verified = await rows.list_verified(session, run.id, superseded=True)
    in_use = await rows.load_ids_in_use(session, run.id)
    retired = [
        snapshot
        for snapshot in verified
        if snapshot.id not in choose_ids_to_keep(verified, rule) | in_use
    ]
    for snapshot in retired:
        rows.set_state(snapshot, SnapshotState.DELETED)
        await artifact_rows.delete(session, await rows.drop_files(session, snapshot.id))
    await _record_changed(session, run, retired)
    stored = [snapshot for snapshot in verified if snapshot.state == SnapshotState.VERIFIED]
    waiting = await rows.list_uploading(session, run.id)
    await _leave_out(
        session,
        run,
        [
            one
            for one in waiting
            if one.id not in choose_ids_to_keep(rows.sort_newest_first([*stored, one]), rule)
        ],
    )


def choose_ids_to_keep(verified: Sequence[SnapshotRow], rule: Retention) -> set[str]:
    """Returns which verified snapshots to keep: the last ones, the best one and the pinned ones.

    The snapshot before the final evaluation is none of the last ones if there is the final one.

    Args:
        verified: The verified snapshots of a run, newest first, superseded ones among them.
        rule: The retention rule of the definition.
    """
    history = [snapshot for snapshot in verified if not snapshot.superseded]
    best = _best(history) if rule.keep_best else None
    different = [
        snapshot
        for newer, snapshot in zip([None, *history], history, strict=False)
        if newer is None or not is_replaced(snapshot, newer)
    ]
    wanted = different[: rule.keep_last] + ([best] if best is not None else [])
    return {snapshot.id for snapshot in wanted} | {
        snapshot.id for snapshot in verified if snapshot.pinned
    }


async def _record_changed(
    session: Session, run: SnapshotRun, changed: Sequence[SnapshotRow]
) -> None:
    for view in await build_views(session, run.id, changed) if changed else []:
        event_log.record(
            session,
            "snapshot",
            view,
            project_id=run.project_id,
            experiment_id=run.experiment_id,
            run_id=run.id,
        )


def _row(origin: Origin, record: SnapshotWritten) -> dict[str, object]:
    finite = record.score is not None and math.isfinite(record.score)
    return {
        "id": record.snapshot_id,
        "project_id": origin.run.project_id,
        "experiment_id": origin.run.experiment_id,
        "run_id": origin.run.id,
        "attempt_id": origin.attempt_id,
        "fence": origin.fence,
        "seq": origin.seq,
        "state": SnapshotState.UPLOADING,
        "reason": record.reason,
        "env_step": record.env_step,
        "update": record.update,
        "episode": record.episode,
        "format_version": record.format_version,
        "resume_exact": record.resume_exact,
        "score": record.score if finite else None,
        "score_text": None if record.score is None else str(write_number(record.score)),
        "size": sum(file.size for file in record.files),
    }


def _view(
    snapshot: SnapshotRow, files: Sequence[SnapshotFileRow], *, newest: bool, best: bool
) -> SnapshotView:
    columns = (
        "id",
        "run_id",
        "attempt_id",
        "env_step",
        "update",
        "episode",
        "fence",
        "resume_exact",
        "superseded",
        "size",
        "created_at",
        "state",
        "reason",
    )
    return SnapshotView(
        **{name: getattr(snapshot, name) for name in columns},
        score=None if snapshot.score_text is None else float(snapshot.score_text),
        best=best,
        newest=newest,
        files=[
            SnapshotFileView(
                name=file.name, size=file.size, sha256=file.sha256, artifact_id=file.artifact_id
            )
            for file in files
        ],
    )


def _best(snapshots: Sequence[SnapshotRow]) -> SnapshotRow | None:
    return max(
        (snapshot for snapshot in snapshots if snapshot.score is not None), key=_rank, default=None
    )


def _rank(snapshot: SnapshotRow) -> tuple[float, int, int]:
    return (
        snapshot.score if snapshot.score is not None else float("-inf"),
        snapshot.env_step,
        snapshot.update,
    )


async def _by_id(session: Session, run_id: str, snapshot_id: str) -> SnapshotRow:
    snapshot = await rows.find(session, snapshot_id)
    if snapshot is None or snapshot.run_id != run_id:
        raise NotFoundError("snapshot of this run")
    if snapshot.state in {SnapshotState.DELETED, SnapshotState.SKIPPED}:
        raise InvalidError(
            "snapshot_deleted",
            "The files of that snapshot are not kept. Choose another.",
            pointer="/evaluate/snapshot",
        )
    if snapshot.state != SnapshotState.VERIFIED:
        message = (
            "That snapshot is still being uploaded. Wait until it is verified, or choose another."
        )
        raise InvalidError("snapshot_unverified", message, pointer="/evaluate/snapshot")
    return snapshot
