"""Workers say their time with heartbeats, so that a wrong clock is shown.

Revision: 0032
Revises: 0031
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workers", sa.Column("clock_skew_seconds", sa.Float(53), nullable=True))


def downgrade() -> None:
    op.drop_column("workers", "clock_skew_seconds")
