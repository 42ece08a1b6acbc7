"""Events of type `points` name a batch of an attempt: one row for all series of a run in a batch.

Revision: 0020
Revises: 0019
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

from migrations.types import document

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_PAGE: Final = 5_000

_events = sa.table(
    "events",
    sa.column("id", sa.BigInteger),
    sa.column("type", sa.String),
    sa.column("run_id", sa.String),
    sa.column("data", document()),
)
_blocks = sa.table(
    "series_blocks",
    sa.column("id", sa.BigInteger),
    sa.column("attempt_id", sa.String),
    sa.column("first_seq", sa.BigInteger),
)


def upgrade() -> None:
    _convert_events()
    op.create_index(
        "ix_series_blocks_attempt_id_first_seq", "series_blocks", ["attempt_id", "first_seq"]
    )
    op.drop_index("ix_series_blocks_attempt_id", "series_blocks")


def _convert_events() -> None:
    """Keeps the first event of each run in a batch, and deletes those of its other series.

    The events of a batch became visible together, so no reader has a cursor among them.
    """
    connection = op.get_bind()
    query = (
        sa.select(_events.c.id, _events.c.run_id, _events.c.data)
        .where(_events.c.type == "points")
        .order_by(_events.c.id)
        .limit(_PAGE)
    )
    cursor, kept = 0, set[tuple[str, str, int]]()
    while page := connection.execute(query.where(_events.c.id > cursor)).all():
        cursor = page[-1].id
        ids = {event.data["block"] for event in page if "block" in event.data}
        batches = {
            block.id: (block.attempt_id, block.first_seq)
            for block in connection.execute(sa.select(_blocks).where(_blocks.c.id.in_(ids)))
        }
        surplus, changed, seen = [], [], set[tuple[str, str, int]]()
        for event in page:
            batch = batches.get(event.data.get("block"))
            key = None if batch is None else (event.run_id, *batch)
            if key is None or key in kept or key in seen:
                surplus.append(event.id)
                continue
            seen.add(key)
            changed.append({"key": event.id, "new": {"attempt_id": key[1], "first_seq": key[2]}})
        if surplus:
            connection.execute(sa.delete(_events).where(_events.c.id.in_(surplus)))
        if changed:
            connection.execute(
                sa.update(_events)
                .where(_events.c.id == sa.bindparam("key"))
                .values(data=sa.bindparam("new", type_=document())),
                changed,
            )
        # Only the last batch of a page may go on in the next one.
        kept = seen


def downgrade() -> None:
    op.create_index("ix_series_blocks_attempt_id", "series_blocks", ["attempt_id"])
    op.drop_index("ix_series_blocks_attempt_id_first_seq", "series_blocks")
    # There are no IDs for further events among the present ones. Without events, each page loads
    # its history again.
    op.execute("DELETE FROM events")
