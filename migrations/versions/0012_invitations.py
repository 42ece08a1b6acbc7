"""Invitations of new users.

Revision: 0012
Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import document, instant

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=True),
        sa.Column("display_name", sa.String(length=64), server_default="", nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("is_admin", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("memberships", document(), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", instant(), nullable=False),
        sa.Column("expires_at", instant(), nullable=False),
        sa.Column("redeemed_at", instant(), nullable=True),
        sa.Column("redeemed_by", sa.String(length=64), nullable=True),
        sa.Column("revoked_at", instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_invitations_code_hash")),
    )
    op.create_index(op.f("ix_invitations_created_at_id"), "invitations", ["created_at", "id"])


def downgrade() -> None:
    op.drop_table("invitations")
