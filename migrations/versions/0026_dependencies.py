"""Jobs that wait for the end of other jobs.

Revision: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_QUEUED = "state = 'queued'"
_COLUMNS = (
    "pool",
    "priority_class",
    "project_id",
    "created_by",
    sa.text("priority DESC"),
    "own_place",
    "seed_index",
    "queued_at",
    "id",
)


def upgrade() -> None:
    op.add_column(
        "jobs", sa.Column("open_dependencies", sa.Integer(), server_default="0", nullable=False)
    )
    op.create_table(
        "job_dependencies",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("after_id", sa.String(length=64), nullable=False),
        sa.Column("condition", sa.String(length=16), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name="fk_job_dependencies_job_id_jobs", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["after_id"], ["jobs.id"], name="fk_job_dependencies_after_id_jobs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "after_id", name="pk_job_dependencies"),
    )
    op.create_index("ix_job_dependencies_after_id", "job_dependencies", ["after_id"])
    _index(f"{_QUEUED} AND open_dependencies = 0")


def downgrade() -> None:
    op.execute("UPDATE jobs SET state = 'paused' WHERE state = 'queued' AND open_dependencies > 0")
    _index(_QUEUED)
    op.drop_table("job_dependencies")
    op.drop_column("jobs", "open_dependencies")


def _index(condition: str) -> None:
    where = sa.text(condition)
    op.drop_index("ix_jobs_start_order", table_name="jobs")
    op.create_index(
        "ix_jobs_start_order", "jobs", [*_COLUMNS], sqlite_where=where, postgresql_where=where
    )
