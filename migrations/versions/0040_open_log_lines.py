"""Lines of a run's log that are not complete yet, such as progress bars.

Revision: 0040
Revises: 0039
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "open_log_lines",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("stream", sa.String(length=16), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_open_log_lines_run_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_open_log_lines_attempt_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "attempt_id", "stream", name="pk_open_log_lines"),
    )
    op.create_index("ix_open_log_lines_attempt_id", "open_log_lines", ["attempt_id"])


def downgrade() -> None:
    op.drop_table("open_log_lines")
