"""Turns the tails of runs into blocks with rollups, and small blocks into large ones.

Points are encoded outside of transactions. The transaction that adds blocks removes the tails and
the blocks that they replace, so readers find each point once, and an interrupted compaction has
changed nothing.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog

from app.db.engine import Database
from app.db.repositories import blocks as block_rows
from app.db.repositories import compaction as rows
from app.db.repositories.blocks import Tail
from app.db.repositories.compaction import BlockKey, NewBlock, SeriesKey
from app.db.tolerance import do_together
from app.metrics import blocks, compaction, point_tables
from app.metrics.columns import Columns
from app.metrics.compaction import BuiltBlock

_log = structlog.get_logger("palestra.curve_compactor")

MAX_BATCHES: Final = 512
"""Batches of runs that one compaction takes."""
URGENT_BATCHES: Final = 8_192
"""Batches of all runs, a quarter of those from which on more are refused, that are moved without
rests."""
_MAX_REST_SECONDS: Final = 0.25
"""Most seconds between two transactions of the compaction."""
MAX_POINTS: Final = 1_000_000
"""Points of a series that one rewriting takes, unless a single block has more."""


async def compact_tail(database: Database, run_id: str) -> int:
    """Moves the oldest batches of a run's tail into blocks.

    Returns:
        The number of batches; 0 also if another process has changed the run's curves meanwhile.
    """
    return await _compact(database, [run_id])


async def compact_tails(database: Database, batches: Mapping[str, int]) -> int:
    """Moves the batches of several runs into blocks, several runs in one transaction.

    The runs of a pack have small tails of the same age, so their transactions would take longer
    than the encoding of their points. While few batches wait, it rests after each transaction for
    as long as that took, so that batches that arrive meanwhile are committed as quickly as before.

    Args:
        database: Database of the curves.
        batches: The number of batches in the tail of each run.

    Returns:
        The number of batches that were moved.
    """
    moved, is_urgent = 0, sum(batches.values()) > URGENT_BATCHES
    groups = list(_group_runs(batches))
    compact = partial(_compact, database)
    for run_ids in groups:
        began = time.monotonic()
        moved += await do_together(compact, run_ids, log=_log, failed="compaction.run_failed")
        if run_ids is not groups[-1] and not is_urgent:
            await asyncio.sleep(min(time.monotonic() - began, _MAX_REST_SECONDS))
    return moved


def _group_runs(batches: Mapping[str, int]) -> Iterator[list[str]]:
    """Yields runs that are compacted together; one with a long tail several times, alone."""
    group, total = list[str](), 0
    for run_id, count in batches.items():
        for _ in range(count // MAX_BATCHES):
            yield [run_id]
        rest = count % MAX_BATCHES
        if group and total + rest > MAX_BATCHES:
            yield group
            group, total = [], 0
        if rest:
            group.append(run_id)
            total += rest
    if group:
        yield group


async def rewrite_blocks(database: Database, run_id: str) -> int:
    """Merges the small blocks of a run to which no points are added any more.

    Returns:
        The number of blocks that were replaced.
    """
    async with database.read() as session:
        series_ids = await rows.load_series_ids(session, [run_id])
    total = 0
    for series_id in series_ids.values():
        while replaced := await _rewrite_series(database, series_id):
            total += replaced
    return total


async def finish_attempt(database: Database, attempt_id: str) -> None:
    """Compacts the runs of an attempt that has ended, and deletes the digests of its records.

    The digests distinguish repeated records from other ones with the same number. No more records
    are taken from the attempt.
    """
    async with database.read() as session:
        run_ids = await rows.list_runs(session, attempt_id)
    for run_id in run_ids:
        while await compact_tail(database, run_id):
            pass
        await rewrite_blocks(database, run_id)
    async with database.write() as session:
        await rows.forget_digests(session, attempt_id)


def list_values(block: BuiltBlock) -> dict[str, Any]:
    """Returns the columns of a block's row that its key does not hold."""
    values: dict[str, Any] = {
        "first_seq": block.first_seq,
        "last_seq": block.last_seq,
        "points": block.points,
        "levels": block.levels,
        "content": block.content,
    }
    for axis, (low, high) in block.ranges.items():
        values |= {f"{axis}_low": low, f"{axis}_high": high}
    return values


async def _compact(database: Database, run_ids: Collection[str]) -> int:
    async with database.read() as session:
        tails = await block_rows.load_tails(session, run_ids, MAX_BATCHES)
        if not tails:
            return 0
        series_ids = await rows.load_series_ids(session, {tail.run_id for tail in tails})
        new = await asyncio.to_thread(_join_tails, tails, series_ids)
        sizes = await rows.load_sizes(session, {key[0] for key in new})
        chosen = {
            key: compaction.choose_merged(sizes.get(key, ()), len(columns))
            for key, columns in new.items()
        }
        contents = await block_rows.load_contents(
            session, [block_id for ids in chosen.values() for block_id in ids]
        )
    built = await asyncio.to_thread(_build, chosen, contents, new, is_live=True)
    is_done = await _replace(database, [tail.id for tail in tails], contents, built)
    return len(tails) if is_done else 0


async def _rewrite_series(database: Database, series_id: int) -> int:
    async with database.read() as session:
        sizes = await rows.load_sizes(session, [series_id])
        chosen = {
            key: compaction.choose_rewritten(stored, MAX_POINTS) for key, stored in sizes.items()
        }
        chosen = {key: ids for key, ids in chosen.items() if ids}
        if not chosen:
            return 0
        contents = await block_rows.load_contents(
            session, [block_id for ids in chosen.values() for block_id in ids]
        )
    built = await asyncio.to_thread(_build, chosen, contents, {}, is_live=False)
    return len(contents) if await _replace(database, (), contents, built) else 0


def _join_tails(
    tails: Iterable[Tail], series_ids: Mapping[SeriesKey, int]
) -> dict[BlockKey, Columns]:
    parts: dict[BlockKey, list[Columns]] = {}
    for tail in tails:
        for name, columns in point_tables.join_series(point_tables.decode(tail.content)).items():
            key = (series_ids[tail.run_id, name], tail.fence, tail.attempt_id)
            parts.setdefault(key, []).append(columns)
    return {key: blocks.concatenate(some) for key, some in parts.items()}


def _build(
    chosen: Mapping[BlockKey, Sequence[int]],
    contents: Mapping[int, bytes],
    new: Mapping[BlockKey, Columns],
    *,
    is_live: bool,
) -> list[NewBlock]:
    found: list[NewBlock] = []
    for key, block_ids in chosen.items():
        parts = [blocks.decode(contents[block_id]) for block_id in block_ids]
        if key in new:
            parts.append(new[key])
        built = compaction.build_blocks(blocks.concatenate(parts), is_live=is_live)
        found += [NewBlock(key, list_values(block), block.cells) for block in built]
    return found


async def _replace(
    database: Database,
    tail_ids: Collection[int],
    block_ids: Collection[int],
    added: Sequence[NewBlock],
) -> bool:
    try:
        async with database.write() as session:
            await rows.replace(session, tail_ids, block_ids, added)
    except rows.OutdatedError:
        return False
    return True
