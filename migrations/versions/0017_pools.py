"""Pools as rows that admit projects; workers belong to a pool, not to a project.

Revision: 0017
Revises: 0016
"""

import time
import uuid
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_DEFAULT = "default"
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_LONGEST = 64

_PROJECTS = sa.table("projects", sa.column("id", sa.String), sa.column("created_at"))
_JOBS = sa.table("jobs", sa.column("project_id", sa.String), sa.column("pool", sa.String))
_WORKERS = sa.table(
    "workers",
    sa.column("id", sa.String),
    sa.column("project_id", sa.String),
    sa.column("created_by", sa.String),
    sa.column("name", sa.String),
    sa.column("former_name", sa.String),
    sa.column("pool", sa.String),
    sa.column("last_heartbeat_at"),
)
_POOLS = sa.table(
    "pools",
    sa.column("id", sa.String),
    sa.column("name", sa.String),
    sa.column("created_at", instant()),
)
_ADMISSIONS = sa.table(
    "project_pools",
    sa.column("project_id", sa.String),
    sa.column("pool_id", sa.String),
    sa.column("created_at", instant()),
)


def upgrade() -> None:
    _create_tables()
    op.add_column("workers", sa.Column("former_name", sa.String(length=64), nullable=True))
    op.add_column("workers", sa.Column("secret_since", instant(), nullable=True))
    op.add_column("workers", sa.Column("next_secret_hash", sa.String(length=64), nullable=True))
    op.add_column("workers", sa.Column("rotation_nonce", sa.String(length=64), nullable=True))
    op.add_column(
        "workers", sa.Column("contract_version", sa.Integer(), server_default="1", nullable=False)
    )
    _make_pools()
    _name_workers()
    op.drop_index("ix_workers_project_id_pool", table_name="workers")
    with op.batch_alter_table("workers") as table:
        table.drop_constraint("uq_workers_project_id_name", type_="unique")
        table.drop_constraint("fk_workers_project_id", type_="foreignkey")
        table.drop_constraint("fk_workers_created_by", type_="foreignkey")
        table.alter_column("created_by", existing_type=sa.String(length=64), nullable=True)
        table.drop_column("project_id")
        table.create_unique_constraint("uq_workers_name", ["name"])
    op.create_index("ix_workers_pool", "workers", ["pool"])
    op.create_index("ix_workers_next_secret_hash", "workers", ["next_secret_hash"], unique=True)
    # Former events of workers hold the IDs of jobs and runs; other projects would receive them.
    op.execute("DELETE FROM events WHERE type = 'worker'")


def _create_tables() -> None:
    op.create_table(
        "pools",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("paused_at", instant(), nullable=True),
        sa.Column("pause_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("default_wall_seconds", sa.Integer(), nullable=True),
        sa.Column("max_wall_seconds", sa.Integer(), nullable=True),
        sa.Column("shows_names", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pools"),
        sa.UniqueConstraint("name", name="uq_pools_name"),
    )
    op.create_table(
        "project_pools",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("share", sa.Float(precision=53), server_default="1", nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_pools_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name="fk_project_pools_pool_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "pool_id", name="pk_project_pools"),
    )
    op.create_index("ix_project_pools_pool_id", "project_pools", ["pool_id"])
    op.create_table(
        "enrolment_tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=True),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=True),
        sa.Column("last_used_at", instant(), nullable=True),
        sa.Column("revoked_at", instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name="fk_enrolment_tokens_pool_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_enrolment_tokens"),
        sa.UniqueConstraint("secret_hash", name="uq_enrolment_tokens_secret_hash"),
    )
    op.create_index(
        "ix_enrolment_tokens_pool_id_created_at_id",
        "enrolment_tokens",
        ["pool_id", "created_at", "id"],
    )


def _make_pools() -> None:
    """Makes a pool of every name that workers and jobs have, and of `default`.

    A pool admits the projects that used its name; `default` admits all of them, since every project
    could submit to it. An empty database gets no pool: the first start makes `default`.
    """
    connection = op.get_bind()
    used: dict[str, set[str]] = {}
    for table in (_WORKERS, _JOBS):
        query = sa.select(table.c.pool, table.c.project_id).distinct()
        for pool, project_id in connection.execute(query):
            used.setdefault(pool, set()).add(project_id)
    projects = set(connection.scalars(sa.select(_PROJECTS.c.id)))
    if projects:
        used[_DEFAULT] = projects
    at = _present()
    for name, admitted in sorted(used.items()):
        pool_id = _new_id()
        connection.execute(sa.insert(_POOLS).values(id=pool_id, name=name, created_at=at))
        rows = [
            {"project_id": project_id, "pool_id": pool_id, "created_at": at}
            for project_id in sorted(admitted)
        ]
        connection.execute(sa.insert(_ADMISSIONS), rows)


def _name_workers() -> None:
    """Renames workers of several projects that have one name.

    The worker with the latest heartbeat keeps the name; the names of the others get a number, and
    these workers register with their former name until they enrol again.
    """
    connection = op.get_bind()
    query = sa.select(_WORKERS.c.id, _WORKERS.c.name).order_by(
        _WORKERS.c.last_heartbeat_at.desc(), _WORKERS.c.id
    )
    rows = connection.execute(query).all()
    names = {row.name for row in rows}
    kept: set[str] = set()
    for worker_id, name in rows:
        if name in kept:
            new = _free(name, names)
            names.add(new)
            connection.execute(
                sa.update(_WORKERS)
                .where(_WORKERS.c.id == worker_id)
                .values(name=new, former_name=name)
            )
        kept.add(name)


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while True:
        end = f"-{number}"
        new = f"{name[: _LONGEST - len(end)]}{end}"
        if new not in taken:
            return new
        number += 1


def _new_id() -> str:
    number = uuid.uuid4().int
    return "pol_" + "".join(_DIGITS[(number >> shift) & 31] for shift in range(125, -1, -5))


def _present() -> Any:
    if op.get_bind().dialect.name == "sqlite":
        return time.time_ns() // 1_000
    return datetime.now(UTC)


def downgrade() -> None:
    """Gives each worker to the oldest project that its pool admits.

    Jobs of the pool's other projects get no worker then. Enrolment tokens of pools are lost.
    """
    op.add_column("workers", sa.Column("project_id", sa.String(length=64), nullable=True))
    _give_workers_to_projects()
    op.drop_index("ix_workers_next_secret_hash", table_name="workers")
    op.drop_index("ix_workers_pool", table_name="workers")
    with op.batch_alter_table("workers") as table:
        table.drop_constraint("uq_workers_name", type_="unique")
    op.execute(
        "UPDATE workers SET name = former_name WHERE former_name IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM workers AS other WHERE other.project_id = workers.project_id "
        "AND other.name = workers.former_name)"
    )
    with op.batch_alter_table("workers") as table:
        table.alter_column("project_id", existing_type=sa.String(length=64), nullable=False)
        table.alter_column("created_by", existing_type=sa.String(length=64), nullable=False)
        for column in (
            "former_name",
            "secret_since",
            "next_secret_hash",
            "rotation_nonce",
            "contract_version",
        ):
            table.drop_column(column)
        table.create_unique_constraint("uq_workers_project_id_name", ["project_id", "name"])
        table.create_foreign_key(
            "fk_workers_project_id", "projects", ["project_id"], ["id"], ondelete="CASCADE"
        )
        table.create_foreign_key("fk_workers_created_by", "users", ["created_by"], ["id"])
    op.create_index("ix_workers_project_id_pool", "workers", ["project_id", "pool"])
    op.drop_table("enrolment_tokens")
    op.drop_table("project_pools")
    op.drop_table("pools")


def _give_workers_to_projects() -> None:
    oldest = "SELECT id FROM projects ORDER BY created_at, id LIMIT 1"
    admitted = (
        "SELECT projects.id FROM projects "
        "JOIN project_pools ON project_pools.project_id = projects.id "
        "JOIN pools ON pools.id = project_pools.pool_id WHERE pools.name = workers.pool "
        "ORDER BY projects.created_at, projects.id LIMIT 1"
    )
    administrator = "SELECT id FROM users ORDER BY is_admin DESC, created_at, id LIMIT 1"
    op.execute(f"UPDATE workers SET project_id = COALESCE(({admitted}), ({oldest}))")  # noqa: S608
    op.execute(
        f"UPDATE workers SET created_by = ({administrator}) "  # noqa: S608
        "WHERE created_by IS NULL OR created_by NOT IN (SELECT id FROM users)"
    )
    op.execute("DELETE FROM workers WHERE project_id IS NULL OR created_by IS NULL")
