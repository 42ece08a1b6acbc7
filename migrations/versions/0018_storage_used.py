"""Storage in use by each project.

Revision: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    used = sa.Column("storage_used", sa.BigInteger(), server_default="0", nullable=False)
    op.add_column("projects", used)
    op.execute(
        "UPDATE projects SET storage_used = COALESCE("
        "(SELECT SUM(blobs.size) FROM blobs WHERE blobs.project_id = projects.id), 0)"
    )


def downgrade() -> None:
    op.drop_column("projects", "storage_used")
