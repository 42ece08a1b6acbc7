"""The counter of the servers' uptime.

Revision: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "server_uptime",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.Column("counted_at", instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_uptime")),
    )


def downgrade() -> None:
    op.drop_table("server_uptime")
