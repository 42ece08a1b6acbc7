"""What the trainer of an attempt does before it trains, and how its updates run.

Revision: 0043
Revises: 0042
"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in ("phase", "compile"):
        op.add_column("attempts", sa.Column(column, sa.String(16), nullable=True))


def downgrade() -> None:
    for column in ("compile", "phase"):
        op.drop_column("attempts", column)
