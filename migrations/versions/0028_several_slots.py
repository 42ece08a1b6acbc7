"""Attempts on several slots of one worker.

Revision: 0028
Revises: 0027
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import document

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "workers",
        sa.Column("takes_several_slots", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column(
        "jobs", sa.Column("assigned_slots", sa.Integer(), server_default="1", nullable=False)
    )
    op.add_column("attempts", sa.Column("further_slots", document(), nullable=True))
    op.add_column(
        "attempts", sa.Column("slot_count", sa.Integer(), server_default="1", nullable=False)
    )


def downgrade() -> None:
    op.drop_column("attempts", "slot_count")
    op.drop_column("attempts", "further_slots")
    op.drop_column("jobs", "assigned_slots")
    op.drop_column("workers", "takes_several_slots")
