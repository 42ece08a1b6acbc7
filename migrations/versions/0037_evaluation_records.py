"""Smaller evaluations: indexes of those of snapshots alone; records are compressed from now on.

The records of existing evaluations stay as they are: readers take both forms.

Revision: 0037
Revises: 0036
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_COLUMNS = ("snapshot_id", "job_id")


def upgrade() -> None:
    of_snapshots = sa.text("snapshot_id IS NOT NULL")
    for column in _COLUMNS:
        op.drop_index(f"ix_evaluations_{column}", "evaluations")
        op.create_index(
            f"ix_evaluations_{column}",
            "evaluations",
            [column],
            sqlite_where=of_snapshots,
            postgresql_where=of_snapshots,
        )


def downgrade() -> None:
    # Records are JSON of an object where they are not compressed.
    found = op.get_bind().execute(
        sa.text("SELECT 1 FROM evaluations WHERE body NOT LIKE '{%' LIMIT 1")
    )
    if found.first():
        raise RuntimeError(
            "the version before cannot read the stored evaluations: restore a backup of the "
            "database"
        )
    for column in _COLUMNS:
        op.drop_index(f"ix_evaluations_{column}", "evaluations")
        op.create_index(f"ix_evaluations_{column}", "evaluations", [column])
