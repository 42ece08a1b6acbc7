"""Lists of what a user submitted, newest first.

Revision: 0013
Revises: 0012
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TABLES = ("experiments", "runs", "jobs")


def upgrade() -> None:
    for table in _TABLES:
        op.create_index(
            f"ix_{table}_created_by_created_at_id", table, ["created_by", "created_at", "id"]
        )


def downgrade() -> None:
    for table in _TABLES:
        op.drop_index(f"ix_{table}_created_by_created_at_id", table_name=table)
