"""Thresholds have a direction; their crossings have the time since the run's first point.

No version before this one wrote to the tables, so they are made anew.

Revision: 0032
Revises: 0031
"""

import sqlalchemy as sa
from alembic import op

from migrations.types import big_key

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _drop()
    _create(
        (sa.Column("is_at_least", sa.Boolean(), nullable=False),),
        (sa.Column("seconds", sa.Float(53), nullable=False),),
    )
    for column in ("env_step", "seconds"):
        op.create_index(
            f"ix_threshold_crossings_{column}",
            "threshold_crossings",
            ["threshold_id", column, "run_id"],
        )


def downgrade() -> None:
    _drop()
    _create((), ())


def _drop() -> None:
    op.drop_table("threshold_crossings")
    op.drop_table("thresholds")


def _create(
    of_threshold: tuple[sa.Column[bool], ...], of_crossing: tuple[sa.Column[float], ...]
) -> None:
    op.create_table(
        "thresholds",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("series", sa.String(length=160), nullable=False),
        sa.Column("value", sa.Float(53), nullable=False),
        *of_threshold,
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_thresholds_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_thresholds"),
        sa.UniqueConstraint("project_id", "name", name="uq_thresholds_project_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "threshold_crossings",
        sa.Column("threshold_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("env_step", sa.BigInteger(), nullable=False),
        sa.Column("wall", sa.Float(53), nullable=False),
        *of_crossing,
        *(
            sa.ForeignKeyConstraint(
                [column], [target], name=f"fk_threshold_crossings_{column}", ondelete="CASCADE"
            )
            for column, target in (("threshold_id", "thresholds.id"), ("run_id", "runs.id"))
        ),
        sa.PrimaryKeyConstraint("threshold_id", "run_id", name="pk_threshold_crossings"),
    )
    op.create_index("ix_threshold_crossings_run_id", "threshold_crossings", ["run_id"])
