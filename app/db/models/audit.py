"""The audit log: a chain of entries, each with the hash of the one before it."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, Integer, String, Text, text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from app.db.models.base import Base, BigKey
from palestra.contract.documents import encode_canonical_json


class CanonicalJson(TypeDecorator[dict[str, Any]]):
    """Column type of a JSON object, stored as the text over which the entry's hash is computed.

    PostgreSQL's `jsonb` would rewrite numbers, after which the hash could not be computed again.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: dict[str, Any] | None, _dialect: Dialect) -> str | None:
        """Returns the stored form."""
        return None if value is None else encode_canonical_json(value).decode()

    def process_result_value(self, value: str | None, _dialect: Dialect) -> dict[str, Any] | None:
        """Returns the object; text that is not JSON becomes its member `unreadable`."""
        try:
            return None if value is None else json.loads(value)
        except (ValueError, RecursionError):
            return {"unreadable": value}


def _build_partial_index(condition: str, *columns: str) -> Index:
    """Returns an index of the entries that match a condition; other inserts do not update it."""
    where = text(condition)
    return Index(None, *columns, sqlite_where=where, postgresql_where=where)


class AuditRow(Base):
    """An entry of the audit log, inserted as the last act of the change and never modified.

    The entry refers to other tables by plain IDs without foreign keys, so that it is kept when the
    objects are deleted. `id` counts from 1 without gaps in the order of the commits.
    """

    __tablename__ = "audit"
    __table_args__ = (
        Index(None, "project_id", "id"),
        Index(None, "object_type", "object_id", "id"),
        _build_partial_index("user_id IS NOT NULL", "user_id", "id"),
        _build_partial_index("outcome = 'refused'", "outcome", "id"),
        Index(None, "at"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=False)
    project_id: Mapped[str | None] = mapped_column(String(64))
    """NULL for what concerns the whole server."""
    actor: Mapped[str] = mapped_column(String(96))
    """`user:usr_...`, `token:tok_...`, `attempt:att_...`, `worker:wrk_...` or `daemon:NAME`."""
    user_id: Mapped[str | None] = mapped_column(String(64))
    """The person: the one who logged in, or the holder of the token."""
    credential: Mapped[str | None] = mapped_column(String(64))
    """ID of the login, token, worker or attempt whose secret the request had."""
    address: Mapped[str | None] = mapped_column(String(64))
    """Address from which the request came."""
    action: Mapped[str] = mapped_column(String(64))
    """For example `job.move`, `experiment.create`, `token.revoke`."""
    object_type: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[str] = mapped_column(String(200))
    outcome: Mapped[str] = mapped_column(String(16))
    """`allowed` or `refused`."""
    code: Mapped[str | None] = mapped_column(String(64))
    """Code of the refusal, for example `missing_scope`."""
    count: Mapped[int] = mapped_column(Integer)
    """Number of equal refusals that the entry stands for; 1 for everything else."""
    data: Mapped[dict[str, Any]] = mapped_column(CanonicalJson)
    """What changed: `from`, `to`, `cause`, `reason`."""
    at: Mapped[datetime]
    """Time of the commit."""
    previous_hash: Mapped[str] = mapped_column(String(64))
    """Hash of the entry before this one."""
    hash: Mapped[str] = mapped_column(String(64))
    """Hash of this entry (`app.domain.audit_chain`)."""


class AuditChainRow(Base):
    """The ends of the chain, in one row: its last entry, and the last entry that was removed."""

    __tablename__ = "audit_chain"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    """Always 1."""
    last_id: Mapped[int] = mapped_column(BigInteger)
    last_hash: Mapped[str] = mapped_column(String(64))
    checkpoint_id: Mapped[int] = mapped_column(BigInteger)
    """`id` of the last entry that the retention rule removed; 0 for none."""
    checkpoint_hash: Mapped[str] = mapped_column(String(64))
    """Hash of that entry: the first remaining entry names it as the hash before it."""
