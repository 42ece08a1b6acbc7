"""Stored blobs, and the artifacts that refer to them."""

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.models.base import Base, Created


class BlobRow(Base):
    """Content stored under a random name; a project stores equal content once."""

    __tablename__ = "blobs"
    __table_args__ = (UniqueConstraint("project_id", "sha256", "size"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Random; the file's name in the store."""
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[Created]


class ArtifactRow(Base):
    """A stored blob of a run with its display name, which never becomes a path."""

    __tablename__ = "artifacts"
    __table_args__ = (
        UniqueConstraint("attempt_id", "run_id", "folder", "name"),
        Index(None, "run_id", "created_at", "id"),
        Index(None, "blob_id"),
        Index(None, "project_id"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("projects.id", ondelete="CASCADE")
    )
    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"))
    attempt_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("attempts.id", ondelete="CASCADE")
    )
    """The attempt that declared it."""
    folder: Mapped[str] = mapped_column(String(64))
    """ID of the snapshot that it belongs to; empty for none, since NULL would not be unique."""
    name: Mapped[str] = mapped_column(String(1024))
    kind: Mapped[str] = mapped_column(String(16))
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    env_step: Mapped[int | None] = mapped_column(BigInteger)
    blob_id: Mapped[str | None] = mapped_column(String(64), ForeignKey("blobs.id"))
    """NULL until the content has arrived and its hash matched."""
    created_at: Mapped[Created]
