"""The source of an evaluation, and an index on its job.

Revision: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "evaluations",
        sa.Column("source", sa.String(length=16), server_default="evaluation", nullable=False),
    )
    op.create_index(op.f("ix_evaluations_job_id"), "evaluations", ["job_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_evaluations_job_id"), table_name="evaluations")
    op.drop_column("evaluations", "source")
