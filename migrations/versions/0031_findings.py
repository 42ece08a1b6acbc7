"""Findings about the trainings of runs, for lists.

The server judges the existing runs after the upgrade, a few at a time.

Revision: 0031
Revises: 0030
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "run_summaries",
        sa.Column("judged_version", sa.BigInteger(), server_default="-1", nullable=False),
    )
    op.create_table(
        "run_findings",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("rule", sa.String(length=64), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.Column("series", sa.String(length=160), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_run_findings_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "rule", name="pk_run_findings"),
    )


def downgrade() -> None:
    op.drop_table("run_findings")
    op.drop_column("run_summaries", "judged_version")
