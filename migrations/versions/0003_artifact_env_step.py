"""The env_step of an artifact.

Revision: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("artifacts", sa.Column("env_step", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("artifacts", "env_step")
