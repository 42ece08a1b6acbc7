"""An index of the members of definitions by their numbers.

Revision: 0035
Revises: 0034
"""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_definition_members_path_number", "definition_members", ["path", "number"])


def downgrade() -> None:
    op.drop_index("ix_definition_members_path_number", "definition_members")
