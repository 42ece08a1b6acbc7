"""Events of type `points` name a batch of an attempt: one row for all series of a run in a batch.

Revision: 0025
Revises: 0024
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

from migrations.types import document

revision = "0025"
down_revision = "0024"
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
    sa.column("series_id", sa.BigInteger),
    sa.column("attempt_id", sa.String),
    sa.column("first_seq", sa.BigInteger),
)
_series = sa.table(
    "series",
    sa.column("id", sa.BigInteger),
    sa.column("run_id", sa.String),
    sa.column("name", sa.String),
)


def upgrade() -> None:
    _convert_events()
    op.create_index(
        "ix_series_blocks_attempt_id_first_seq", "series_blocks", ["attempt_id", "first_seq"]
    )
    op.drop_index("ix_series_blocks_attempt_id", "series_blocks")


def _read_pages(connection: sa.Connection) -> Iterator[Sequence[Any]]:
    query = (
        sa.select(_events.c.id, _events.c.run_id, _events.c.data)
        .where(_events.c.type == "points")
        .order_by(_events.c.id)
        .limit(_PAGE)
    )
    cursor = 0
    while page := connection.execute(query.where(_events.c.id > cursor)).all():
        yield page
        cursor = page[-1].id


def _convert_events() -> None:
    """Keeps the first event of each run in a batch, and deletes those of its other series.

    The events of a batch became visible together, so no reader has a cursor among them.
    """
    connection = op.get_bind()
    kept = set[tuple[str, str, int]]()
    for page in _read_pages(connection):
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
    _restore_events()


def _restore_events() -> None:
    """Lets each event name one block of its batch, since there are no IDs for further events.

    A page that is open meanwhile shows the other series once it is loaded again.
    """
    connection = op.get_bind()
    for event in chain.from_iterable(_read_pages(connection)):
        if "first_seq" not in event.data:
            continue
        block = connection.execute(
            sa.select(_blocks.c.id, _series.c.name)
            .join(_series, _series.c.id == _blocks.c.series_id)
            .where(
                _series.c.run_id == event.run_id,
                _blocks.c.attempt_id == event.data["attempt_id"],
                _blocks.c.first_seq == event.data["first_seq"],
            )
            .order_by(_blocks.c.id)
            .limit(1)
        ).first()
        if block is not None:
            changed = {"series": block.name, "block": block.id}
            connection.execute(
                sa.update(_events).where(_events.c.id == event.id).values(data=changed)
            )
