"""Moves the statistics of epochs from rows into blocks.

Epochs are encoded outside of transactions. The transaction that adds a block deletes the rows and
the block that it replaces, so readers find each epoch once, and an interrupted compaction has
changed nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import structlog

from app.db.engine import Database
from app.db.repositories import epochs as rows
from app.db.repositories.compaction import OutdatedError
from app.db.repositories.epochs import EpochBlock, StoredEpoch
from app.db.tolerance import tolerate
from app.metrics import epoch_blocks

_log = structlog.get_logger("palestra.curve_compactor")

EPOCHS: Final = 64
"""Epochs of a run that are moved at once; a run that is being trained has fewer as rows."""
MAX_EPOCHS: Final = 2_048
"""Epochs after which a round ends, so that many rows do not keep points waiting."""
_RUNS: Final = 50


async def compact_epochs(database: Database) -> int:
    """Moves epochs of runs that have many, or are not being trained, into blocks.

    Returns:
        The number of epochs that were moved; from `MAX_EPOCHS` on others may be left.
    """
    async with database.read() as session:
        run_ids = await rows.list_compactable(session, EPOCHS, _RUNS)
    total = 0
    for run_id in run_ids:
        with tolerate(_log, "epoch_compaction.run_failed", run_id=run_id):
            total += await compact_run(database, run_id, MAX_EPOCHS - total)
    return total


async def compact_run(database: Database, run_id: str, most: int = MAX_EPOCHS) -> int:
    """Moves the epochs of a run into blocks, until few are left or `most` were moved.

    Returns:
        The number of epochs that were moved.
    """
    total, moved = 0, EPOCHS
    # Fewer are the end of a run that is not trained, or too few of one that is.
    while total < most and moved >= EPOCHS:
        moved = await _compact_oldest(database, run_id)
        total += moved
    return total


async def _compact_oldest(database: Database, run_id: str) -> int:
    async with database.read() as session:
        moved = await rows.load_oldest(session, run_id, EPOCHS)
        if not moved:
            return 0
        block = await rows.find_last_block(session, run_id, epoch_blocks.MAX_BYTES)
    continued = block if block is not None and block.fence == moved[0].fence else None
    added = await asyncio.to_thread(_build, moved, continued)
    try:
        async with database.write() as session:
            await rows.replace(session, moved, continued, added)
    except OutdatedError:
        return 0
    return len(moved)


def _build(moved: Sequence[StoredEpoch], continued: EpochBlock | None) -> list[dict[str, Any]]:
    """Returns the rows of the blocks that hold the epochs of a block and those that follow them."""
    of_attempts: dict[tuple[str, int], list[epoch_blocks.Epoch]] = {}
    if continued is not None:
        key = (continued.attempt_id, continued.fence)
        of_attempts[key] = epoch_blocks.decode(continued.content)
    for epoch in moved:
        key = (epoch.attempt_id, epoch.fence)
        of_attempts.setdefault(key, []).append((epoch.seq, epoch.body))
    return [
        {
            "run_id": moved[0].run_id,
            "attempt_id": attempt_id,
            "fence": fence,
            "first_seq": some[0][0],
            "last_seq": some[-1][0],
            "epochs": len(some),
            "text_bytes": sum(len(text.encode()) for _, text in some),
            "content": epoch_blocks.encode(some),
        }
        for (attempt_id, fence), epochs in of_attempts.items()
        for some in epoch_blocks.cut(epochs)
    ]
