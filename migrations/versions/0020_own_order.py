"""Waiting jobs are moved by hand among the jobs of their person.

Revision: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_QUEUED = sa.text("state = 'queued'")
_GROUP = ("pool", "priority_class", "project_id", "created_by")


def upgrade() -> None:
    op.add_column(
        "jobs", sa.Column("own_place", sa.BigInteger(), server_default="0", nullable=False)
    )
    _index("own_place")


def downgrade() -> None:
    _index()
    op.drop_column("jobs", "own_place")


def _index(*after_priority: str) -> None:
    op.drop_index("ix_jobs_start_order", table_name="jobs")
    op.create_index(
        "ix_jobs_start_order",
        "jobs",
        [*_GROUP, sa.text("priority DESC"), *after_priority, "seed_index", "queued_at", "id"],
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    )
