"""Tokens with two secrets, of which the older one is valid for a while after a rotation.

Revision: 0014
Revises: 0013
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tokens", sa.Column("previous_hash", sa.String(length=64), nullable=True))
    op.add_column("tokens", sa.Column("previous_until", instant(), nullable=True))
    op.create_index("ix_tokens_previous_hash", "tokens", ["previous_hash"])


def downgrade() -> None:
    op.drop_index("ix_tokens_previous_hash", table_name="tokens")
    op.drop_column("tokens", "previous_until")
    op.drop_column("tokens", "previous_hash")
