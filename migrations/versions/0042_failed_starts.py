"""Failed starts of trainers, and why a worker drains by itself.

Revision: 0042
Revises: 0041
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("jobs", "workers"):
        op.add_column(
            table, sa.Column("failed_starts", sa.Integer(), server_default="0", nullable=False)
        )
    op.add_column("workers", sa.Column("drain_reason", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("workers", "drain_reason")
    for table in ("workers", "jobs"):
        op.drop_column(table, "failed_starts")
