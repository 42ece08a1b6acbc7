"""Reads all epochs of a run page by page, each epoch once.

As in `stored_points`, every page is read within a transaction of its own and continues from a
record on, since the compactor moves epochs into blocks between two pages. Epochs that arrive after
the state was read are left out.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.db.engine import Database
from app.db.repositories import epochs as rows
from app.db.repositories.epochs import EpochBlock, EpochKey, StoredEpoch
from app.metrics import epoch_blocks
from app.metrics.fence_chain import Position
from app.services.curves.stored_points import PointsMissingError, PointState
from palestra.contract.telemetry import EpochStatsRecord

_PAGE_EPOCHS: Final = 64
"""Epochs of a page that are not in blocks."""


@dataclass(frozen=True, slots=True)
class StoredEpochRecord:
    """The record of an epoch, with the fence and the number under which it is stored."""

    fence: int
    seq: int
    record: EpochStatsRecord

    @property
    def position(self) -> Position:
        """The state of training after the epoch."""
        return Position(self.record.total_env_steps, self.record.update)


async def read_epochs(
    database: Database, state: PointState, total: int
) -> AsyncIterator[list[StoredEpochRecord]]:
    """Yields the epochs of a run page by page, in the order (fence, record).

    Args:
        database: The database.
        state: State of the run.
        total: Number of epochs in this state.

    Raises:
        PointsMissingError: If the epochs are fewer or more, since the run was deleted.
    """
    after: EpochKey | None = None
    found = 0
    while True:
        async with database.read() as session:
            part = await rows.read_next(session, state.run_id, after, _PAGE_EPOCHS)
        if not part:
            break
        last, page = await asyncio.to_thread(_parse, part, state, after)
        after = last
        found += len(page)
        if page:
            yield page
    if found != total:
        raise PointsMissingError(f"{found} of {total} epochs of {state.run_id}")


def _parse(
    part: EpochBlock | Sequence[StoredEpoch], state: PointState, after: EpochKey | None
) -> tuple[EpochKey, list[StoredEpochRecord]]:
    """Returns the last record of a part, and its epochs behind `after` that are in the state."""
    epochs = _list_epochs(part)
    page = [
        StoredEpochRecord(key.fence, key.seq, EpochStatsRecord.model_validate_json(text))
        for attempt_id, key, text in epochs
        if key.seq <= state.acked.get(attempt_id, 0) and (after is None or key > after)
    ]
    return epochs[-1][1], page


def _list_epochs(part: EpochBlock | Sequence[StoredEpoch]) -> list[tuple[str, EpochKey, str]]:
    if isinstance(part, EpochBlock):
        return [
            (part.attempt_id, EpochKey(part.fence, seq), text)
            for seq, text in epoch_blocks.decode(part.content)
        ]
    return [(one.attempt_id, EpochKey(one.fence, one.seq), one.body) for one in part]
