"""Artifacts and the blobs that hold their content."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy import delete as sql_delete
from sqlalchemy.orm import InstrumentedAttribute

from app.db.engine import Session
from app.db.models.artifacts import ArtifactRow, BlobRow
from app.db.repositories.keyset_pages import select_page
from app.db.repositories.projects import add_storage, lock_for_storage
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


def set_blob(artifact: ArtifactRow, blob_id: str | None) -> None:
    """Sets the stored content of an artifact."""
    artifact.blob_id = blob_id


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

    Returns the stored row: the existing one if the project already has the same content.
    """
    await lock_for_storage(session, [row["project_id"]])
    added = insert_new(session, BlobRow, [dict(row)]).returning(BlobRow.id)
    if (await session.execute(added)).one_or_none() is not None:
        await add_storage(session, row["project_id"], row["size"])
    found = await find_blob(session, row["project_id"], row["sha256"], row["size"])
    assert found is not None
    return found


async def drop_unused_blobs(session: Session) -> list[str]:
    """Deletes the rows of blobs to which no artifact refers; returns their IDs.

    Their files may be deleted once that is committed.
    """
    is_unused = ~exists().where(ArtifactRow.blob_id == BlobRow.id)
    found = await session.execute(
        select(BlobRow.id, BlobRow.project_id).where(is_unused).limit(_SWEEP)
    )
    owners = dict(found.all())
    if not owners:
        return []
    await lock_for_storage(session, set(owners.values()))
    unused = select(BlobRow.id).where(BlobRow.id.in_(owners), is_unused)
    ids = await session.scalars(unused.with_for_update(skip_locked=True))
    return await delete_blobs(session, BlobRow.id.in_(list(ids)))


async def delete_blobs(session: Session, which: ColumnElement[bool]) -> list[str]:
    """Deletes rows of blobs, whose projects are locked; returns their IDs."""
    columns = (BlobRow.id, BlobRow.project_id, BlobRow.size)
    statement = sql_delete(BlobRow).where(which).returning(*columns)
    statement = statement.execution_options(synchronize_session=False)
    deleted = (await session.execute(statement)).all()
    freed: Counter[str] = Counter()
    for _, project_id, size in deleted:
        freed[project_id] += size
    for project_id, size in freed.items():
        await add_storage(session, project_id, -size)
    return [blob_id for blob_id, _, _ in deleted]


async def filter_known_blobs(session: Session, ids: Collection[str]) -> set[str]:
    """Returns the given IDs that belong to blobs."""
    return set(await session.scalars(select(BlobRow.id).where(BlobRow.id.in_(ids))))
