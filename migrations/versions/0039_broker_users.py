"""Workers have users of the broker, and a forgotten worker gives its name to another one.

Revision: 0039
Revises: 0038
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import instant

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workers", sa.Column("broker_password_hash", sa.String(64), nullable=True))
    op.add_column("workers", sa.Column("replaced_at", instant(), nullable=True))
    with op.batch_alter_table("workers") as table:
        table.drop_constraint("uq_workers_name", type_="unique")
    is_listed = sa.text("replaced_at IS NULL")
    op.create_index(
        "ix_workers_name",
        "workers",
        ["name"],
        unique=True,
        postgresql_where=is_listed,
        sqlite_where=is_listed,
    )


def downgrade() -> None:
    """Gives each replaced worker its ID as its name."""
    op.execute("UPDATE workers SET name = id WHERE replaced_at IS NOT NULL")
    op.drop_index("ix_workers_name", "workers")
    with op.batch_alter_table("workers") as table:
        table.drop_column("replaced_at")
        table.drop_column("broker_password_hash")
        table.create_unique_constraint("uq_workers_name", ["name"])
