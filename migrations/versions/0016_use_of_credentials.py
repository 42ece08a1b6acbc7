"""Where logins and tokens were used from, and how a login was opened.

Revision: 0016
Revises: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("tokens", "last_used_address", 64),
    ("login_sessions", "last_used_address", 64),
    ("login_sessions", "browser", 64),
    ("login_sessions", "opened_by", 16),
)


def upgrade() -> None:
    for table, name, length in _COLUMNS:
        op.add_column(table, sa.Column(name, sa.String(length=length), nullable=True))


def downgrade() -> None:
    for table, name, _ in reversed(_COLUMNS):
        op.drop_column(table, name)
