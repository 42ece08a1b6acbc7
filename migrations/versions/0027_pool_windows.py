"""Maintenance windows and reservations of pools.

Revision: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import document, instant

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pool_windows",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("starts_at", instant(), nullable=False),
        sa.Column("ends_at", instant(), nullable=False),
        sa.Column("workers", document(), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=True),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name="fk_pool_windows_pool_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_pool_windows_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_pool_windows_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pool_windows"),
    )
    op.create_index("ix_pool_windows_pool_id_ends_at", "pool_windows", ["pool_id", "ends_at"])


def downgrade() -> None:
    op.drop_table("pool_windows")
