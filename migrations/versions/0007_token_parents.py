"""The token with which a token was created.

Revision: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # No foreign key: SQLite would have to copy the table, and a parent's row is never deleted
    # before its user's.
    op.add_column("tokens", sa.Column("parent_id", sa.String(length=64), nullable=True))
    op.create_index("ix_tokens_parent_id", "tokens", ["parent_id"])


def downgrade() -> None:
    op.drop_index("ix_tokens_parent_id", table_name="tokens")
    op.drop_column("tokens", "parent_id")
