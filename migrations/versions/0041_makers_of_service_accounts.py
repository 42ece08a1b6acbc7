"""Service accounts name the user who made them.

Revision: 0041
Revises: 0040
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("made_by", sa.String(length=64), nullable=True))


def downgrade() -> None:
    op.drop_column("users", "made_by")
