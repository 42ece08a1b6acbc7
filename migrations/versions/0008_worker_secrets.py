"""The hash of each worker's own secret.

Revision: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workers", sa.Column("secret_hash", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_workers_secret_hash"), "workers", ["secret_hash"], unique=True)


def downgrade() -> None:
    op.drop_index(op.f("ix_workers_secret_hash"), table_name="workers")
    op.drop_column("workers", "secret_hash")
