"""Results that attempts have not uploaded yet, and snapshots that never will be uploaded.

Revision: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import document

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_LEFT_BEHIND = """
    state = 'uploading' AND NOT EXISTS (
        SELECT 1 FROM attempts
        WHERE attempts.id = snapshots.attempt_id AND attempts.state IN ('starting', 'running')
    )
"""
"""Snapshots that will not be uploaded, since their attempt has ended."""


def upgrade() -> None:
    op.add_column("attempts", sa.Column("backlog", document(), nullable=True))
    op.add_column(
        "attempts", sa.Column("gives_up", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    left = f"SELECT id FROM snapshots WHERE {_LEFT_BEHIND}"  # noqa: S608 - a constant
    op.execute(f"UPDATE snapshot_files SET artifact_id = NULL WHERE snapshot_id IN ({left})")  # noqa: S608
    op.execute(f"DELETE FROM artifacts WHERE folder IN ({left})")  # noqa: S608
    op.execute(f"UPDATE snapshots SET state = 'skipped' WHERE {_LEFT_BEHIND}")  # noqa: S608


def downgrade() -> None:
    op.execute("UPDATE snapshots SET state = 'uploading' WHERE state = 'skipped'")
    op.drop_column("attempts", "gives_up")
    op.drop_column("attempts", "backlog")
