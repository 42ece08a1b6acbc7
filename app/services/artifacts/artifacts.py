"""Declares, receives, verifies and serves artifacts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from app.db.engine import Database, Session
from app.db.models.artifacts import ArtifactRow
from app.db.repositories import artifacts as rows
from app.db.repositories import attempts as attempt_rows
from app.db.repositories.writers import CarriedRun
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.artifacts.blob_store import BlobStore, ReceivedContent
from app.services.events import event_log
from app.services.projects import storage_limits
from app.services.runs import runs
from app.services.snapshots import snapshots
from app.services.telemetry import batches
from app.services.views import pages
from palestra.contract.names import ArtifactName, Sha256, new_id
from palestra.contract.resources import ArtifactDeclaration, ArtifactKind, ArtifactView
from palestra.contract.states import LIVE_ATTEMPT_STATES, SnapshotState
from palestra.contract.telemetry import SnapshotId
from palestra.contract.views import Page
from palestra.contract.wording import describe_fault

_NAME: TypeAdapter[str] = TypeAdapter(ArtifactName)
_SHA256: TypeAdapter[str] = TypeAdapter(Sha256)
_SNAPSHOT: TypeAdapter[str] = TypeAdapter(SnapshotId)


@dataclass(frozen=True, slots=True)
class Content:
    """A stored artifact and its file."""

    view: ArtifactView
    path: Path


async def declare(
    database: Database, store: BlobStore, attempt_id: str, declaration: ArtifactDeclaration
) -> ArtifactView:
    """Declares an artifact before its upload.

    Repeating a declaration returns the same artifact. Content that the project already holds counts
    as stored.

    Raises:
        InvalidError: For an invalid name, hash or snapshot.
        ConflictError: `stale_attempt`; `artifact_exists` if the name was declared with other
            content; `storage_limit_reached` for a file that is no part of a snapshot.
        StorageFullError: If the server's disk has no room for it now.
    """
    async with database.write() as session:
        artifact = await _declare(session, attempt_id, declaration)
    if not artifact.stored:
        await asyncio.to_thread(store.check_room, declaration.size)
    elif artifact.snapshot_id is not None:
        await drop_unused(database, store)
    return artifact


async def _declare(
    session: Session, attempt_id: str, declaration: ArtifactDeclaration
) -> ArtifactView:
    writer = await batches.open_writer(session, attempt_id)
    run = writer.runs.get(declaration.run_id)
    if run is None:
        raise ForbiddenError("other_run", "The attempt does not carry that run.")
    name, folder = _check_declaration(declaration)
    await _check_snapshot(session, attempt_id, declaration, name)
    values = {
        "project_id": run.project_id,
        "run_id": run.id,
        "attempt_id": attempt_id,
        "folder": folder,
        "name": name,
    }
    content = {
        "kind": declaration.kind,
        "size": declaration.size,
        "sha256": declaration.sha256,
        "env_step": declaration.env_step,
    }
    artifact = await rows.declare(session, {**values, **content, "id": new_id("art")})
    if any(getattr(artifact, column) != value for column, value in content.items()):
        message = "This attempt declared that name with other content. Choose another name."
        raise ConflictError("artifact_exists", message, pointer="/name")
    if artifact.blob_id is None:
        blob_id = await rows.find_blob(
            session, run.project_id, declaration.sha256, declaration.size
        )
        rows.set_blob(artifact, blob_id)
        if blob_id is not None:
            await _note_stored(session, run, artifact)
        elif not folder:
            await storage_limits.check_upload(session, run.project_id, declaration.size)
    return build_view(artifact)


async def upload(
    database: Database,
    store: BlobStore,
    attempt_id: str,
    artifact_id: str,
    chunks: AsyncIterator[bytes],
) -> ArtifactView:
    """Receives the content of a declared artifact. No session is open while it streams.

    Raises:
        NotFoundError: If the attempt declared no such artifact.
        ConflictError: `stale_attempt`; `already_stored`; `storage_limit_reached` if other files
            used the room since the declaration.
        InvalidError: `size_mismatch` or `hash_mismatch`.
        StorageFullError: If the disk is full, or becomes so meanwhile; nothing is kept.
    """
    async with database.write() as session:
        artifact = await _expecting(session, attempt_id, artifact_id)
    received = await store.receive(chunks, size=artifact.size, sha256=artifact.sha256)
    kept: str | None = None
    try:
        async with database.write() as session:
            artifact = await _keep(session, attempt_id, artifact_id, received)
        kept = artifact.blob_id
    finally:
        if kept != received.blob_id:
            store.delete([received.blob_id])
    if artifact.folder:
        await drop_unused(database, store)
    return build_view(artifact)


async def _keep(
    session: Session, attempt_id: str, artifact_id: str, received: ReceivedContent
) -> ArtifactRow:
    artifact = await _expecting(session, attempt_id, artifact_id)
    if not artifact.folder:
        await storage_limits.check_upload(session, artifact.project_id, received.size)
    row = {
        "id": received.blob_id,
        "project_id": artifact.project_id,
        "sha256": received.sha256,
        "size": received.size,
    }
    rows.set_blob(artifact, await rows.add_blob(session, row))
    run = (await batches.open_writer(session, attempt_id)).runs[artifact.run_id]
    await _note_stored(session, run, artifact)
    return artifact


async def _note_stored(session: Session, run: CarriedRun, artifact: ArtifactRow) -> None:
    """Records that the content of an artifact is there; of a snapshot once it is complete."""
    if artifact.folder:
        await snapshots.attach_file(session, run, artifact)
        return
    event_log.record(
        session,
        "artifact",
        build_view(artifact),
        project_id=run.project_id,
        experiment_id=run.experiment_id,
        run_id=run.id,
    )


async def _expecting(session: Session, attempt_id: str, artifact_id: str) -> ArtifactRow:
    await batches.open_writer(session, attempt_id)
    artifact = await rows.find(session, artifact_id, lock=True)
    if artifact is None or artifact.attempt_id != attempt_id:
        raise NotFoundError("artifact of this attempt")
    if artifact.blob_id is not None:
        raise ConflictError(
            "already_stored", "The content of that artifact is stored already. It never changes."
        )
    return artifact


async def find_content(
    session: Session, principal: Principal, artifact_id: str, store: BlobStore
) -> Content:
    """Returns a stored artifact with its file.

    A live attempt may read the files of snapshots of its own runs.

    Raises:
        NotFoundError: If the caller may see no such artifact, or its content has not arrived.
    """
    artifact = _visible(await rows.find(session, artifact_id), principal)
    if artifact is None or artifact.blob_id is None:
        raise NotFoundError("stored artifact")
    if principal.attempt_id is not None and not await _is_input(
        session, principal.attempt_id, artifact
    ):
        raise NotFoundError("stored artifact")
    return Content(build_view(artifact), store.path(artifact.blob_id))


async def find_snapshot_content(
    session: Session, principal: Principal, run_id: str, snapshot_id: str, store: BlobStore
) -> dict[str, Content]:
    """Returns the files of a verified snapshot by their names within it.

    Raises:
        NotFoundError: If the caller sees no such run, or it has no verified snapshot of that ID.
    """
    run = await runs.find(session, principal, run_id)
    snapshot = await snapshots.find_verified(session, run.id, snapshot_id)
    return {
        file.name: await find_content(session, principal, file.artifact_id, store)
        for file in snapshot.files
    }


def _visible(artifact: ArtifactRow | None, principal: Principal) -> ArtifactRow | None:
    is_mine = artifact is not None and artifact.project_id in principal.project_ids
    return artifact if is_mine else None


async def _is_input(session: Session, attempt_id: str, artifact: ArtifactRow) -> bool:
    attempt = await attempt_rows.find(session, attempt_id)
    if attempt is None or attempt.state not in LIVE_ATTEMPT_STATES or not artifact.folder:
        return False
    carried = (await attempt_rows.load_runs(session, [attempt_id]))[attempt_id]
    return any(row.run_id == artifact.run_id for row in carried)


async def get(session: Session, principal: Principal, artifact_id: str) -> ArtifactView:
    """Returns an artifact.

    Raises:
        NotFoundError: If the project has no such artifact.
    """
    artifact = _visible(await rows.find(session, artifact_id), principal)
    if artifact is None:
        raise NotFoundError("artifact")
    return build_view(artifact)


async def list_for_run(
    session: Session,
    principal: Principal,
    run_id: str,
    request: PageRequest,
    kind: ArtifactKind | None = None,
) -> Page[ArtifactView]:
    """Returns a page of a run's artifacts, of one kind or of all. Sorts by `created_at` and `name`.

    Raises:
        NotFoundError: If the project has no such run.
    """
    run = await runs.find(session, principal, run_id)
    keys = build_keyset(request, rows.COLUMNS)
    return await pages.cut(await rows.list_page(session, run.id, kind, keys), request, keys, _views)


async def sweep(database: Database, store: BlobStore) -> int:
    """Deletes blobs without an artifact, and old files without a row.

    Returns the number of both. Called by the compactor.
    """
    unused = await drop_unused(database, store)
    old = await asyncio.to_thread(store.list_old_files)
    async with database.read() as session:
        known = await rows.filter_known_blobs(session, old)
    orphans = [blob_id for blob_id in old if blob_id not in known]
    await asyncio.to_thread(store.delete, orphans)
    return unused + len(orphans)


async def drop_unused(database: Database, store: BlobStore) -> int:
    """Deletes blobs without an artifact: their rows, and after the commit their files.

    Returns the number of blobs.
    """
    async with database.write() as session:
        unused = await rows.drop_unused_blobs(session)
    await asyncio.to_thread(store.delete, unused)
    return len(unused)


def build_view(artifact: ArtifactRow) -> ArtifactView:
    """Returns the public form of an artifact."""
    columns = (
        "id",
        "run_id",
        "attempt_id",
        "name",
        "kind",
        "size",
        "sha256",
        "env_step",
        "created_at",
    )
    values = {column: getattr(artifact, column) for column in columns}
    return ArtifactView(
        **values, snapshot_id=artifact.folder or None, stored=artifact.blob_id is not None
    )


async def _views(found: Sequence[ArtifactRow]) -> list[ArtifactView]:
    return [build_view(artifact) for artifact in found]


def _check_declaration(declaration: ArtifactDeclaration) -> tuple[str, str]:
    """Returns the validated name and folder of a declaration."""
    name = _valid(_NAME, declaration.name, "/name")
    _valid(_SHA256, declaration.sha256, "/sha256")
    if (declaration.kind == "snapshot") != (declaration.snapshot_id is not None):
        raise InvalidError(
            "snapshot_needed",
            "snapshot_id goes with the kind snapshot, and with no other.",
            pointer="/snapshot_id",
        )
    if declaration.kind == "video" and declaration.env_step is None:
        raise InvalidError(
            "env_step_needed",
            "A video says at which env_step of the training it was made.",
            pointer="/env_step",
        )
    return name, "" if declaration.snapshot_id is None else _valid(
        _SNAPSHOT, declaration.snapshot_id, "/snapshot_id"
    )


def _valid(kind: TypeAdapter[str], value: str, pointer: str) -> str:
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError as error:
        reason = describe_fault(error.errors(include_url=False, include_input=False)[0])
        raise InvalidError("invalid_value", reason, pointer=pointer) from None


async def _check_snapshot(
    session: Session, attempt_id: str, declaration: ArtifactDeclaration, name: str
) -> None:
    if declaration.snapshot_id is None:
        return
    snapshot, file = await snapshots.find_expected_file(session, declaration.snapshot_id, name)
    if snapshot is None:
        return
    if snapshot.attempt_id != attempt_id or snapshot.run_id != declaration.run_id:
        raise NotFoundError("snapshot of this attempt")
    if file is None or (file.size, file.sha256) != (declaration.size, declaration.sha256):
        raise InvalidError(
            "not_in_snapshot",
            "The snapshot's record lists no such file with that size and SHA-256.",
            pointer="/name",
        )
    if snapshot.state == SnapshotState.DELETED:
        raise ConflictError(
            "snapshot_deleted", "Newer snapshots took its place; its files are no longer wanted."
        )
    if snapshot.state == SnapshotState.SKIPPED:
        raise ConflictError(
            "snapshot_skipped", "Newer snapshots were stored first; its files are no longer wanted."
        )
