"""How the compactor shares the server with the batches that arrive meanwhile."""

import asyncio
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app import process_parts
from app.daemons.curve_compactor import CurveCompactor
from app.db.models import TailRow
from app.services.telemetry import compaction
from tests.app.api.serving import serve
from tests.app.services.telemetry_training import Training
from tests.app.services.test_pack_batches import send_pack, start_pack
from tests.support import records


async def count_tails(training: Training) -> int:
    async with training.database.read() as session:
        return await session.scalar(select(func.count()).select_from(TailRow)) or 0


async def test_a_long_tail_of_one_run_is_compacted_in_one_round(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MAX_BATCHES", 4)
    for seq in range(1, 12):
        await training.send(seq, [records.make_points(training.run_id, "loss", [seq])])
    assert await CurveCompactor(training.database).tick(batches=2) == 11
    assert await count_tails(training) == 0
    assert await training.read_values("loss") == [float(seq) for seq in range(1, 12)]


async def test_the_compaction_rests_between_its_transactions_unless_many_batches_wait(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        rests.extend([seconds] if seconds else [])  # others give the loop away with 0
        await sleep(0)

    monkeypatch.setattr(compaction, "MAX_BATCHES", 2)
    monkeypatch.setattr(compaction.asyncio, "sleep", note)
    order = await start_pack(training.world, range(2, 5))
    lengths = {run.run_id: 2 for run in order.runs}
    last = await send_pack(training.database, order, 1)
    last = await send_pack(training.database, order, last + 1)
    assert await compaction.compact_tails(training.database, lengths) == 6
    assert len(rests) == 2
    assert all(0 < one <= 0.25 for one in rests)
    rests.clear()
    monkeypatch.setattr(compaction, "URGENT_BATCHES", 5)
    last = await send_pack(training.database, order, last + 1)
    await send_pack(training.database, order, last + 1)
    assert await compaction.compact_tails(training.database, lengths) == 6
    assert rests == []


def test_a_server_lets_no_thread_keep_the_interpreter_for_long(
    sqlite_file: Path, tmp_path: Path
) -> None:
    before = sys.getswitchinterval()

    async def look() -> float:
        async with serve(f"sqlite:///{sqlite_file}", tmp_path):
            return sys.getswitchinterval()

    try:
        assert asyncio.run(look()) == pytest.approx(process_parts.SWITCH_SECONDS)
    finally:
        sys.setswitchinterval(before)
