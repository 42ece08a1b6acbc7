"""Jobs that start from the beginning, and jobs that may continue with other code.

Revision: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COLUMNS = ("afresh", "allow_code_change")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column(
            "jobs", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
        )


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("jobs", name)
