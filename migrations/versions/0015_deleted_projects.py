"""Deleted projects, and indexes by which their content is removed row by row.

Deleting an attempt, a submission or a project looks for rows that refer to it: without an index
that reads a whole table for each.

Revision: 0015
Revises: 0014
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_INDEXES = (
    ("series_blocks", "attempt_id"),
    ("log_blocks", "attempt_id"),
    ("snapshots", "attempt_id"),
    ("artifacts", "project_id"),
    ("attempts", "project_id"),
    ("runs", "submission_id"),
)


def upgrade() -> None:
    op.add_column("projects", sa.Column("deleted_by", sa.String(length=64), nullable=True))
    op.add_column("projects", sa.Column("restorable_until", instant(), nullable=True))
    op.add_column("projects", sa.Column("removal_started_at", instant(), nullable=True))
    for table, column in _INDEXES:
        op.create_index(f"ix_{table}_{column}", table, [column])


def downgrade() -> None:
    for table, column in _INDEXES:
        op.drop_index(f"ix_{table}_{column}", table_name=table)
    for column in ("removal_started_at", "restorable_until", "deleted_by"):
        op.drop_column("projects", column)
