"""Blocks of epochs, to which the compactor moves the rows of `epoch_stats`.

Rows of earlier versions stay where they are until the compactor moves them, run by run: readers
read both.

Revision: 0036
Revises: 0035
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import big_key

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "epoch_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("epochs", sa.Integer(), nullable=False),
        sa.Column("text_bytes", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_epoch_blocks_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_epoch_blocks"),
    )
    op.create_index(
        "uq_epoch_blocks_order", "epoch_blocks", ["run_id", "fence", "first_seq"], unique=True
    )


def downgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT 1 FROM epoch_blocks LIMIT 1")).first():
        raise RuntimeError(
            "the version before cannot read the stored epochs: restore a backup of the database"
        )
    op.drop_table("epoch_blocks")
