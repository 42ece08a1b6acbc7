"""Limits on the running jobs of an experiment, and quotas of projects and persons in a pool.

Revision: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("experiments", sa.Column("max_running", sa.Integer(), nullable=True))
    op.create_table(
        "quotas",
        sa.Column("pool_id", sa.String(length=64), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("queued", sa.Integer(), nullable=True),
        sa.Column("running", sa.Integer(), nullable=True),
        sa.Column("device_hours", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.id"], name="fk_quotas_pool_id_pools", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name="fk_quotas_project_id_projects",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pool_id", "project_id", "subject", name="pk_quotas"),
    )


def downgrade() -> None:
    op.drop_table("quotas")
    op.drop_column("experiments", "max_running")
