"""Curves are stored as one row per run and batch, which become large blocks with rollups later.

Existing blocks are kept as they are, marked as not yet converted: readers decode them, and
`palestra db upgrade` and the compactor replace them, run by run.

Revision: 0029
Revises: 0028
"""

import sqlalchemy as sa
from alembic import op

from migrations.progress import report_progress
from migrations.types import big_key, instant

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_AXES = ("env_step", "update", "episode", "wall")
_AT_ONCE = 20_000


def upgrade() -> None:
    op.create_table(
        "curve_tails",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("received_at", instant(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_curve_tails_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_curve_tails"),
    )
    op.create_index("ix_curve_tails_run_id_id", "curve_tails", ["run_id", "id"])
    op.create_table(
        "curve_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        *(
            sa.Column(f"{axis}_{end}", sa.BigInteger(), nullable=False)
            for axis in _AXES
            for end in ("low", "high")
        ),
        sa.Column("levels", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name="fk_curve_blocks_series_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_curve_blocks"),
    )
    op.create_table(
        "curve_rollups",
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("axis", sa.SmallInteger(), nullable=False),
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("block_id", sa.BigInteger(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name="fk_curve_rollups_series_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("series_id", "axis", "level", "block_id", name="pk_curve_rollups"),
        sqlite_with_rowid=False,
    )
    _copy_blocks()
    op.drop_table("series_blocks")
    op.create_index(
        "uq_curve_blocks_order",
        "curve_blocks",
        ["series_id", "fence", "attempt_id", "first_seq"],
        unique=True,
    )
    op.create_index(
        "ix_curve_blocks_not_converted",
        "curve_blocks",
        ["series_id"],
        sqlite_where=sa.text("levels = -1"),
        postgresql_where=sa.text("levels = -1"),
    )
    _complete_events()
    op.drop_column("telemetry_batches", "sha256")


def _copy_blocks() -> None:
    connection = op.get_bind()
    total = connection.scalar(sa.text("SELECT COUNT(*) FROM series_blocks")) or 0
    last = connection.scalar(sa.text("SELECT MAX(id) FROM series_blocks")) or 0
    copied = 0
    for low in range(0, last, _AT_ONCE):
        copied += connection.execute(
            sa.text(
                "INSERT INTO curve_blocks (series_id, attempt_id, fence, first_seq, last_seq, "
                "points, env_step_low, env_step_high, update_low, update_high, episode_low, "
                "episode_high, wall_low, wall_high, levels, content) "
                "SELECT blocks.series_id, blocks.attempt_id, blocks.fence, blocks.first_seq, "
                "COALESCE(batches.last_seq, blocks.first_seq), blocks.points, "
                "0, 0, 0, 0, 0, 0, 0, 0, -1, blocks.content FROM series_blocks AS blocks "
                "LEFT JOIN telemetry_batches AS batches ON batches.attempt_id = blocks.attempt_id "
                "AND batches.first_seq = blocks.first_seq "
                "WHERE blocks.id > :low AND blocks.id <= :high ORDER BY blocks.id"
            ),
            {"low": low, "high": low + _AT_ONCE},
        ).rowcount
        report_progress(f"{copied:,} of {total:,} blocks of curves copied")


def _complete_events() -> None:
    """Adds the last record of the batch to events, since blocks are no longer those of a batch."""
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "UPDATE events SET data = json_set(data, '$.last_seq', COALESCE((SELECT last_seq FROM "
            "telemetry_batches WHERE attempt_id = json_extract(data, '$.attempt_id') AND "
            "first_seq = json_extract(data, '$.first_seq')), json_extract(data, '$.first_seq'))) "
            "WHERE type = 'points' AND json_extract(data, '$.first_seq') IS NOT NULL"
        )
        return
    op.execute(
        "UPDATE events SET data = jsonb_set(data, '{last_seq}', to_jsonb(COALESCE((SELECT last_seq "
        "FROM telemetry_batches WHERE attempt_id = events.data ->> 'attempt_id' AND first_seq = "
        "(events.data ->> 'first_seq')::bigint), (events.data ->> 'first_seq')::bigint))) "
        "WHERE type = 'points' AND data ->> 'first_seq' IS NOT NULL"
    )


def downgrade() -> None:
    for table, condition in (("curve_blocks", "levels <> -1"), ("curve_tails", "1 = 1")):
        found = f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1"  # noqa: S608 - constants
        if op.get_bind().execute(sa.text(found)).first():
            raise RuntimeError(
                "the version before cannot read the stored curves: restore a backup of the database"
            )
    op.add_column(
        "telemetry_batches",
        sa.Column("sha256", sa.String(length=64), nullable=False, server_default=""),
    )
    with op.batch_alter_table("telemetry_batches") as batch:
        batch.alter_column("sha256", server_default=None)
    _create_series_blocks()
    # Blocks that were not rewritten since the upgrade still have the form of the version before.
    op.execute(
        "INSERT INTO series_blocks (series_id, attempt_id, fence, first_seq, points, content) "
        "SELECT series_id, attempt_id, fence, first_seq, points, content FROM curve_blocks "
        "ORDER BY id"
    )
    for table in ("curve_rollups", "curve_blocks", "curve_tails"):
        op.drop_table(table)


def _create_series_blocks() -> None:
    op.create_table(
        "series_blocks",
        sa.Column("id", big_key(), autoincrement=True, nullable=False),
        sa.Column("series_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt_id", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [column], [target], name=f"fk_series_blocks_{column}", ondelete="CASCADE"
            )
            for column, target in (("attempt_id", "attempts.id"), ("series_id", "series.id"))
        ),
        sa.PrimaryKeyConstraint("id", name="pk_series_blocks"),
        sa.UniqueConstraint(
            "series_id",
            "attempt_id",
            "first_seq",
            name="uq_series_blocks_series_id_attempt_id_first_seq",
        ),
    )
    for columns in (["series_id", "fence", "first_seq"], ["attempt_id", "first_seq"]):
        op.create_index(f"ix_series_blocks_{'_'.join(columns)}", "series_blocks", columns)
