"""Artifacts and the blobs that hold their content."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete as sql_delete
from sqlalchemy import exists, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db.engine import Session
from app.db.models.artifacts import ArtifactRow, BlobRow
from app.db.repositories.keyset_pages import select_page
from app.db.upsert import insert_new
from app.domain.paging import Keyset

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": ArtifactRow.created_at,
    "name": ArtifactRow.name,
}

_SWEEP: Final = 500


async def find(session: Session, artifact_id: str, *, lock: bool = False) -> ArtifactRow | None:
    """Returns an artifact; with `lock`, locked against other uploads."""
    query = (
        select(ArtifactRow)
        .where(ArtifactRow.id == artifact_id)
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def declare(session: Session, row: Mapping[str, Any]) -> ArtifactRow:
    """Adds an artifact, or returns the existing one with this attempt, run, folder and name."""
    await session.execute(insert_new(session, ArtifactRow, [dict(row)]))
    same = [
        getattr(ArtifactRow, column) == row[column]
        for column in ("attempt_id", "run_id", "folder", "name")
    ]
    return (await session.scalars(select(ArtifactRow).where(*same))).one()


async def list_page(
    session: Session, run_id: str, kind: str | None, keys: Keyset
) -> Sequence[ArtifactRow]:
    """Returns a page of a run's artifacts, of one kind or of all, and one row more."""
    query = select(ArtifactRow).where(ArtifactRow.run_id == run_id)
    if kind is not None:
        query = query.where(ArtifactRow.kind == kind)
    return (await session.scalars(select_page(query, keys, COLUMNS, ArtifactRow.id))).all()


async def list_for_folder(session: Session, folder: str) -> Sequence[ArtifactRow]:
    """Returns the artifacts of a snapshot."""
    return (await session.scalars(select(ArtifactRow).where(ArtifactRow.folder == folder))).all()


async def delete(session: Session, artifacts: Collection[ArtifactRow]) -> None:
    """Deletes artifacts. Blobs without an artifact are deleted later."""
    await session.execute(
        sql_delete(ArtifactRow).where(ArtifactRow.id.in_([artifact.id for artifact in artifacts]))
    )


async def find_blob(session: Session, project_id: str, sha256: str, size: int) -> str | None:
    """Returns the project's blob with this content.

    The row is locked until the transaction ends, so that the sweep cannot delete it.
    """
    same = (BlobRow.project_id == project_id, BlobRow.sha256 == sha256, BlobRow.size == size)
    return await session.scalar(
        select(BlobRow.id).where(*same).with_for_update(read=True, key_share=True)
    )


async def add_blob(session: Session, row: Mapping[str, Any]) -> str:
    """Adds a blob.

    Returns the stored row, which is an older one if the project already has the same content.
    """
    await session.execute(insert_new(session, BlobRow, [dict(row)]))
    found = await find_blob(session, row["project_id"], row["sha256"], row["size"])
    assert found is not None
    return found


async def drop_unused_blobs(session: Session) -> list[str]:
    """Deletes the rows of blobs to which no artifact refers; returns their IDs.

    Their files may be deleted once that is committed.
    """
    unused = (
        select(BlobRow.id)
        .where(~exists().where(ArtifactRow.blob_id == BlobRow.id))
        .limit(_SWEEP)
        .with_for_update(skip_locked=True)
    )
    ids = list(await session.scalars(unused))
    return (
        list(
            await session.scalars(
                sql_delete(BlobRow).where(BlobRow.id.in_(ids)).returning(BlobRow.id)
            )
        )
        if ids
        else []
    )


async def filter_known_blobs(session: Session, ids: Collection[str]) -> set[str]:
    """Returns which of some ids are blobs."""
    return set(await session.scalars(select(BlobRow.id).where(BlobRow.id.in_(ids))))
