"""The audit log as a chain of hashes, without foreign keys.

Revision: 0010
Revises: 0009
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

from migrations.types import big_key, document, instant

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_BATCH = 5_000
"""Entries that are in memory at a time."""
_GENESIS = "0" * 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FORMER_INDEX = "ix_audit_project_id_object_type_object_id_id"
_INDEXES: dict[tuple[str, ...], str | None] = {
    ("project_id", "id"): None,
    ("object_type", "object_id", "id"): None,
    ("user_id", "id"): "user_id IS NOT NULL",
    ("outcome", "id"): "outcome = 'refused'",
    ("at",): None,
}
"""Columns and condition of each index."""


def upgrade() -> None:
    # The table is copied: SQLite cannot drop a foreign key, and every entry gets a hash.
    op.drop_index(_FORMER_INDEX, table_name="audit")
    _set_aside()
    chained = _create("audit", _chained_columns())
    chain = _create("audit_chain", _chain())
    connection = op.get_bind()
    end = (0, _GENESIS)
    for batch in _batches(connection, sa.table("audit_former", *_columns(_former()))):
        holders = _holders(connection, {row["actor"] for row in batch})
        rows = []
        for row in batch:
            rows.append(_chained(row, holders, *end))
            end = (rows[-1]["id"], rows[-1]["hash"])
        connection.execute(sa.insert(chained), rows)
    if end[0]:
        ends = {"last_id": end[0], "last_hash": end[1], "checkpoint_id": 0}
        connection.execute(sa.insert(chain), [{"id": 1, **ends, "checkpoint_hash": _GENESIS}])
    op.drop_table("audit_former")
    for names, condition in _INDEXES.items():
        where = None if condition is None else sa.text(condition)
        op.create_index(
            "_".join(("ix_audit", *names)),
            "audit",
            list(names),
            sqlite_where=where,
            postgresql_where=where,
        )


def downgrade() -> None:
    """Drops what the former table cannot hold: entries of no project or of a deleted one."""
    for names in _INDEXES:
        op.drop_index("_".join(("ix_audit", *names)), table_name="audit")
    _set_aside()
    former = _create(
        "audit",
        _former(),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_audit_project_id", ondelete="CASCADE"
        ),
    )
    connection = op.get_bind()
    names = [column.name for column in former.columns]
    projects = set(connection.scalars(sa.text("SELECT id FROM projects")))
    for batch in _batches(connection, sa.table("audit_former", *_columns(_chained_columns()))):
        rows = [
            {**{name: row[name] for name in names}, "data": json.loads(row["data"])}
            for row in batch
            if row["project_id"] in projects and len(row["object_id"]) <= 96
        ]
        if rows:
            connection.execute(sa.insert(former), rows)
    op.drop_table("audit_former")
    op.drop_table("audit_chain")
    op.create_index(_FORMER_INDEX, "audit", ["project_id", "object_type", "object_id", "id"])
    if connection.dialect.name == "postgresql":
        counted = (
            "SELECT setval('audit_id_seq', (SELECT COALESCE(MAX(id), 0) + 1 FROM audit), false)"
        )
        connection.execute(sa.text(counted))


def _former() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=96), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_type", sa.String(length=32), nullable=False),
        sa.Column("object_id", sa.String(length=96), nullable=False),
        sa.Column("data", document(), nullable=False),
        sa.Column("at", instant(), nullable=False),
    )


def _chained_columns() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("id", big_key(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=True),
        sa.Column("actor", sa.String(length=96), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("credential", sa.String(length=64), nullable=True),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_type", sa.String(length=32), nullable=False),
        sa.Column("object_id", sa.String(length=200), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("code", sa.String(length=64), nullable=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", instant(), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
    )


def _chain() -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("last_hash", sa.String(length=64), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_hash", sa.String(length=64), nullable=False),
    )


def _set_aside() -> None:
    op.rename_table("audit", "audit_former")
    if op.get_bind().dialect.name == "postgresql":
        # The new table has a primary key and a sequence of the same names.
        op.execute("ALTER INDEX pk_audit RENAME TO pk_audit_former")
        op.execute("ALTER SEQUENCE IF EXISTS audit_id_seq RENAME TO audit_former_id_seq")


def _create(
    name: str, columns: tuple[sa.Column[Any], ...], *constraints: sa.Constraint
) -> sa.Table:
    key = sa.PrimaryKeyConstraint("id", name=f"pk_{name}")
    return op.create_table(name, *columns, *constraints, key)


def _columns(columns: tuple[sa.Column[Any], ...]) -> Iterator[sa.ColumnClause[Any]]:
    return (sa.column(column.name, column.type) for column in columns)


def _batches(connection: sa.Connection, table: sa.TableClause) -> Iterator[list[dict[str, Any]]]:
    """Yields all rows in the order of their ids."""
    last = 0
    while True:
        query = sa.select(table).where(table.c.id > last).order_by(table.c.id).limit(_BATCH)
        rows = [dict(row) for row in connection.execute(query).mappings()]
        if not rows:
            return
        yield rows
        last = rows[-1]["id"]


def _holders(connection: sa.Connection, actors: set[str]) -> dict[str, str]:
    """Returns the users of the tokens among some actors."""
    wanted = [actor.removeprefix("token:") for actor in actors if actor.startswith("token:")]
    tokens = sa.table("tokens", sa.column("id"), sa.column("user_id"))
    found: dict[str, str] = {}
    for first in range(0, len(wanted), 500):
        query = sa.select(tokens).where(tokens.c.id.in_(wanted[first : first + 500]))
        found |= {row.id: row.user_id for row in connection.execute(query)}
    return found


def _chained(
    row: Mapping[str, Any], holders: Mapping[str, str], last_id: int, previous_hash: str
) -> dict[str, Any]:
    """Returns the new row of an entry; the hash is that of `app.domain.audit_chain`.

    A released step never changes, so it has its own copy of the computation.
    """
    kind, _, who = row["actor"].partition(":")
    content = {
        "id": last_id + 1,
        "project_id": row["project_id"],
        "actor": row["actor"],
        "user_id": who if kind == "user" else holders.get(who),
        "credential": who if kind in {"token", "attempt", "worker"} else None,
        "action": row["action"],
        "object_type": row["object_type"],
        "object_id": row["object_id"],
        "outcome": "allowed",
        "count": 1,
        "data": row["data"],
    }
    hashed = {name: value for name, value in content.items() if value is not None}
    hashed |= {"at": _microseconds(row["at"]), "previous_hash": previous_hash}
    digest = hashlib.sha256(_canonical(hashed).encode()).hexdigest()
    columns = {"address": None, "code": None, "data": _canonical(row["data"]), "at": row["at"]}
    return {**content, **columns, "previous_hash": previous_hash, "hash": digest}


def _canonical(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _microseconds(at: Any) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) if isinstance(at, datetime) else int(at)
