"""Roles in each request's project, server administrators, slugs, tokens of all projects.

Revision: 0011
Revises: 0010
"""

import re
import unicodedata
from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_USERS = sa.table(
    "users",
    sa.column("id", sa.String),
    sa.column("name", sa.String),
    sa.column("display_name", sa.String),
    sa.column("is_admin", sa.Boolean),
    sa.column("created_at"),
)
_PROJECTS = sa.table(
    "projects",
    sa.column("id", sa.String),
    sa.column("name", sa.String),
    sa.column("slug", sa.String),
    sa.column("created_at"),
)
_MEMBERSHIPS = sa.table(
    "memberships",
    sa.column("project_id", sa.String),
    sa.column("user_id", sa.String),
    sa.column("role", sa.String),
)


def upgrade() -> None:
    op.add_column("projects", sa.Column("slug", sa.String(length=64), nullable=True))
    op.add_column(
        "projects", sa.Column("description", sa.Text(), server_default="", nullable=False)
    )
    op.add_column("projects", sa.Column("archived_at", instant(), nullable=True))
    op.add_column("projects", sa.Column("deleted_at", instant(), nullable=True))
    op.add_column("projects", sa.Column("storage_limit", sa.BigInteger(), nullable=True))
    op.add_column(
        "users",
        sa.Column("display_name", sa.String(length=64), server_default="", nullable=False),
    )
    op.add_column("users", sa.Column("email", sa.String(length=254), nullable=True))
    op.add_column(
        "users", sa.Column("is_admin", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("users", sa.Column("service_project_id", sa.String(length=64), nullable=True))
    op.create_index("ix_users_service_project_id", "users", ["service_project_id"])
    _name_projects()
    _name_users()
    _appoint_administrators()
    with op.batch_alter_table("projects") as table:
        table.alter_column("slug", existing_type=sa.String(length=64), nullable=False)
        table.create_unique_constraint("uq_projects_slug", ["slug"])
    _free_credentials()


def _name_projects() -> None:
    """Gives every project a slug of its name."""
    connection = op.get_bind()
    rows = connection.execute(
        sa.select(_PROJECTS.c.id, _PROJECTS.c.name).order_by(_PROJECTS.c.created_at, _PROJECTS.c.id)
    ).all()
    for (project_id, _), slug in zip(
        rows, _slugs((name for _, name in rows), "project"), strict=True
    ):
        connection.execute(
            sa.update(_PROJECTS).where(_PROJECTS.c.id == project_id).values(slug=slug)
        )


def _name_users() -> None:
    """Keeps names as display names where the login name becomes another one."""
    connection = op.get_bind()
    rows = connection.execute(
        sa.select(_USERS.c.id, _USERS.c.name).order_by(_USERS.c.created_at, _USERS.c.id)
    ).all()
    # Users whose name needs no change come first, so that no older user takes their name.
    rows = sorted(rows, key=lambda row: _slug(row.name) != row.name)
    for (user_id, name), slug in zip(rows, _slugs((name for _, name in rows), "user"), strict=True):
        if slug != name:
            connection.execute(
                sa.update(_USERS).where(_USERS.c.id == user_id).values(name=slug, display_name=name)
            )


def _appoint_administrators() -> None:
    """Makes admins maintainers, and those of the first project server administrators too."""
    connection = op.get_bind()
    first = (
        sa.select(_PROJECTS.c.id)
        .order_by(_PROJECTS.c.created_at, _PROJECTS.c.id)
        .limit(1)
        .scalar_subquery()
    )
    of_first = sa.select(_MEMBERSHIPS.c.user_id).where(
        _MEMBERSHIPS.c.role == "admin", _MEMBERSHIPS.c.project_id == first
    )
    connection.execute(sa.update(_USERS).where(_USERS.c.id.in_(of_first)).values(is_admin=True))
    connection.execute(
        sa.update(_MEMBERSHIPS).where(_MEMBERSHIPS.c.role == "admin").values(role="maintainer")
    )


def _free_credentials() -> None:
    """Unties logins, links and stored answers from a project; a token may cover all projects."""
    with op.batch_alter_table("tokens") as table:
        table.alter_column("project_id", existing_type=sa.String(length=64), nullable=True)
    op.create_index("ix_tokens_user_id_created_at_id", "tokens", ["user_id", "created_at", "id"])
    for name in ("login_sessions", "login_links"):
        with op.batch_alter_table(name) as table:
            table.drop_constraint(f"fk_{name}_project_id", type_="foreignkey")
            table.drop_column("project_id")
    op.create_index("ix_login_sessions_user_id_ended_at", "login_sessions", ["user_id", "ended_at"])
    # Of equal keys in several projects, which no client makes, the newest answer is kept.
    op.execute(
        "DELETE FROM idempotency_keys WHERE EXISTS (SELECT 1 FROM idempotency_keys AS other "
        "WHERE other.user_id = idempotency_keys.user_id AND other.key = idempotency_keys.key "
        "AND (other.created_at > idempotency_keys.created_at OR "
        "(other.created_at = idempotency_keys.created_at "
        "AND other.project_id > idempotency_keys.project_id)))"
    )
    with op.batch_alter_table("idempotency_keys") as table:
        table.drop_constraint("fk_idempotency_keys_project_id", type_="foreignkey")
        table.drop_constraint("pk_idempotency_keys", type_="primary")
        table.drop_column("project_id")
        table.create_primary_key("pk_idempotency_keys", ["user_id", "key"])
    _widen_tokens()


def _widen_tokens() -> None:
    """Unbinds the tokens of server administrators that have every scope from their project.

    Server-wide actions, such as draining a worker, need a token that is not bound to a project.
    """
    op.execute(
        "UPDATE tokens SET project_id = NULL WHERE CAST(scopes AS TEXT) LIKE '%\"admin\"%' "
        "AND user_id IN (SELECT id FROM users WHERE is_admin)"
    )


def _slug(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:56].strip("-")


def _slugs(names: Iterable[str], substitute: str) -> list[str]:
    """Returns a different slug for each name, with a number where two would be equal."""
    taken: list[str] = []
    for name in names:
        slug = base = _slug(name) or substitute
        number = 1
        while slug in taken:
            number += 1
            slug = f"{base}-{number}"
        taken.append(slug)
    return taken


def downgrade() -> None:
    first_project = (
        "(SELECT project_id FROM memberships WHERE memberships.user_id = {table}.user_id "
        "ORDER BY created_at, project_id LIMIT 1)"
    )
    for name in ("login_sessions", "login_links", "idempotency_keys"):
        op.add_column(name, sa.Column("project_id", sa.String(length=64), nullable=True))
    for name in ("tokens", "login_sessions", "login_links", "idempotency_keys"):
        chosen = first_project.format(table=name)
        op.execute(f"UPDATE {name} SET project_id = {chosen} WHERE project_id IS NULL")  # noqa: S608
        op.execute(f"DELETE FROM {name} WHERE project_id IS NULL")  # noqa: S608
    op.drop_index("ix_tokens_user_id_created_at_id", table_name="tokens")
    op.drop_index("ix_login_sessions_user_id_ended_at", table_name="login_sessions")
    for name in ("tokens", "login_sessions", "login_links", "idempotency_keys"):
        with op.batch_alter_table(name) as table:
            table.alter_column("project_id", existing_type=sa.String(length=64), nullable=False)
            if name != "tokens":
                table.create_foreign_key(
                    f"fk_{name}_project_id", "projects", ["project_id"], ["id"], ondelete="CASCADE"
                )
            if name == "idempotency_keys":
                table.drop_constraint("pk_idempotency_keys", type_="primary")
                table.create_primary_key("pk_idempotency_keys", ["project_id", "user_id", "key"])
    op.execute("UPDATE memberships SET role = 'admin' WHERE role = 'maintainer'")
    op.drop_index("ix_users_service_project_id", table_name="users")
    with op.batch_alter_table("users") as table:
        for column in ("display_name", "email", "is_admin", "service_project_id"):
            table.drop_column(column)
    with op.batch_alter_table("projects") as table:
        table.drop_constraint("uq_projects_slug", type_="unique")
        for column in ("slug", "description", "archived_at", "deleted_at", "storage_limit"):
            table.drop_column(column)
