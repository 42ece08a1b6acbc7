"""How the slots of each pool were occupied, by hour; the ledger is read by time alone, too.

Revision: 0022
Revises: 0021
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_SUMS = ("recorded_seconds", "slot_seconds", "busy_seconds", "idle_waiting_seconds")


def upgrade() -> None:
    op.create_table(
        "pool_hours",
        sa.Column("pool", sa.String(length=64), nullable=False),
        sa.Column("hour", instant(), nullable=False),
        sa.Column("sampled_at", instant(), nullable=True),
        *(
            sa.Column(name, sa.Float(precision=53), server_default="0", nullable=False)
            for name in _SUMS
        ),
        sa.PrimaryKeyConstraint("pool", "hour", name="pk_pool_hours"),
    )
    op.create_index("ix_usage_entries_ended_at", "usage_entries", ["ended_at"])


def downgrade() -> None:
    op.drop_index("ix_usage_entries_ended_at", table_name="usage_entries")
    op.drop_table("pool_hours")
