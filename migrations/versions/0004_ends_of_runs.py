"""How each run of a pack ended.

Revision: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import document, instant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_COLUMNS = ("outcome", "cause", "failure", "ended_at")


def upgrade() -> None:
    op.add_column("job_runs", sa.Column("outcome", sa.String(length=16), nullable=True))
    op.add_column("job_runs", sa.Column("cause", sa.String(length=32), nullable=True))
    op.add_column("job_runs", sa.Column("failure", document(), nullable=True))
    op.add_column("job_runs", sa.Column("ended_at", instant(), nullable=True))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("job_runs", name)
