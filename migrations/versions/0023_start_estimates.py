"""Estimated times of start, and indexes with which runtimes of similar jobs are found.

Revision: 0023
Revises: 0022
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_OPEN = sa.text("started_at IS NULL")
_FINISHED = sa.text("finished_at IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "start_estimates",
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("made_at", instant(), nullable=False),
        sa.Column("earliest", instant(), nullable=True),
        sa.Column("median", instant(), nullable=True),
        sa.Column("latest", instant(), nullable=True),
        sa.Column("unknown", sa.Text(), nullable=True),
        sa.Column("first_made_at", instant(), nullable=True),
        sa.Column("first_earliest", instant(), nullable=True),
        sa.Column("first_median", instant(), nullable=True),
        sa.Column("first_latest", instant(), nullable=True),
        sa.Column("started_at", instant(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name="pk_start_estimates"),
    )
    op.create_index("ix_start_estimates_pool_started_at", "start_estimates", ["pool", "started_at"])
    op.create_index(
        "ix_start_estimates_open",
        "start_estimates",
        ["pool"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
    op.create_index("ix_experiments_definition_hash", "experiments", ["definition_hash"])
    op.create_index("ix_experiments_env_agent", "experiments", ["env", "agent"])
    op.create_index(
        "ix_jobs_finished",
        "jobs",
        ["experiment_id", "finished_at"],
        sqlite_where=_FINISHED,
        postgresql_where=_FINISHED,
    )
    op.create_index("ix_usage_entries_job_id", "usage_entries", ["job_id"])


def downgrade() -> None:
    op.drop_index("ix_usage_entries_job_id", table_name="usage_entries")
    op.drop_index("ix_jobs_finished", table_name="jobs")
    op.drop_index("ix_experiments_env_agent", table_name="experiments")
    op.drop_index("ix_experiments_definition_hash", table_name="experiments")
    op.drop_table("start_estimates")
