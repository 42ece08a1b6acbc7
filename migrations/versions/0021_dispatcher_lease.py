"""The lease of the dispatcher.

Revision: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dispatcher_lease",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(length=160), nullable=False),
        sa.Column("taken_at", instant(), nullable=False),
        sa.Column("held_until", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dispatcher_lease")),
    )


def downgrade() -> None:
    op.drop_table("dispatcher_lease")
