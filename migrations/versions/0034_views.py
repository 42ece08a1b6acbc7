"""Saved views of the page of runs.

Revision: 0034
Revises: 0033
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import document, instant

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "views",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("owner_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("state", document(), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("updated_at", instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_views_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name="fk_views_owner_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_views"),
        sa.UniqueConstraint(
            "project_id", "owner_id", "name", name="uq_views_project_id_owner_id_name"
        ),
    )
    op.create_index("ix_views_owner_id", "views", ["owner_id"])


def downgrade() -> None:
    op.drop_table("views")
