"""Workers say their time with heartbeats, so that a wrong clock is shown.

Revision: 0033
Revises: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workers", sa.Column("clock_skew_seconds", sa.Float(53), nullable=True))


def downgrade() -> None:
    op.drop_column("workers", "clock_skew_seconds")
