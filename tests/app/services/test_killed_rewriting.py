"""Small blocks are merged by a process that is killed again and again."""

import sys

import pytest
from sqlalchemy import func, select

from app.db.engine import Database
from app.db.models import BlockRow
from app.metrics import compaction as merging
from app.services.telemetry import compaction
from tests.app.services.telemetry_training import Training
from tests.support import records
from tests.support.killed_program import kill_repeatedly

BLOCKS = 60
SERIES = 6
KILLS = 4
REWRITE = """
import asyncio, sys
from app.db.engine import Database
from app.services.telemetry import compaction

async def rewrite(url, run_id):
    database = Database(url)
    print("begins", flush=True)
    while await compaction.rewrite_blocks(database, run_id):
        pass
    await database.dispose()

asyncio.run(rewrite(*sys.argv[1:]))
"""


async def count_blocks(database: Database) -> int:
    async with database.read() as session:
        return await session.scalar(select(func.count()).select_from(BlockRow)) or 0


@pytest.mark.processes
async def test_a_rewriting_that_is_killed_loses_no_point_and_continues(
    training: Training, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewriting is killed at random moments, and run again until it ends."""
    # A block for each batch.
    monkeypatch.setattr(merging, "choose_merged", lambda _stored, _new: [])
    names = [f"loss/{number}" for number in range(SERIES)]
    for seq in range(1, BLOCKS + 1):
        points = [records.make_points(training.run_id, name, [seq], [seq + 0.5]) for name in names]
        await training.send(1 + (seq - 1) * SERIES, points)
        await compaction.compact_tail(training.database, training.run_id)
    before = {name: await training.read_values(name) for name in names}
    assert all(len(values) == BLOCKS for values in before.values())
    left = [await count_blocks(training.database)]
    assert left == [BLOCKS * SERIES]
    command = [sys.executable, "-c", REWRITE, database_url, training.run_id]
    async for _ in kill_repeatedly(command, KILLS, 0.05):
        left.append(await count_blocks(training.database))
        assert {name: await training.read_values(name) for name in names} == before
    assert left == sorted(left, reverse=True)
    assert left[-1] == SERIES
