"""The server's work for a pack: as many statements for a batch of many runs as for one of few."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import func, select

from app.daemons.curve_compactor import CurveCompactor
from app.daemons.judge import PAUSE, RUNS_PER_TRANSACTION, Judge
from app.daemons.summariser import Summariser
from app.db.engine import Database
from app.db.models import BlockRow, EpochStatsRow, EventRow, SeriesSummaryRow, TailRow
from app.services.curves import health
from app.services.telemetry import batches, compaction
from palestra.contract.work_order import WorkOrder
from tests.support import records
from tests.support.server_fixture import World
from tests.support.statements import note_statements


async def start_pack(world: World, seeds: range) -> WorkOrder:
    registered = await world.register(name=f"worker-{len(seeds)}")
    job = await world.submit_one_job(seeds=tuple(seeds), resources={"pack": len(seeds)})
    return (await world.start(job.id, registered.worker_id)).work_order


async def send_pack(database: Database, order: WorkOrder, first_seq: int) -> int:
    """Sends a point and the statistics of an epoch of every run; returns the last record."""
    content = [
        record
        for run in order.runs
        for record in (
            records.make_points(run.run_id, "loss", [first_seq]),
            records.make_stats(run.run_id, first_seq),
        )
    ]
    async with database.write() as session:
        delivery = records.make_delivery(order.attempt_id, first_seq, content)
        return await batches.take(session, delivery)


async def count_statements(database: Database, orders: Sequence[WorkOrder]) -> list[int]:
    """Returns the numbers of statements of a batch of each attempt, apart from its first one."""
    counts = []
    for order in orders:
        last = await send_pack(database, order, 1)
        with note_statements(database) as found:
            await send_pack(database, order, last + 1)
        counts.append(len(found))
    return counts


async def test_a_batch_of_sixteen_runs_needs_no_more_statements_than_one_of_two(
    world: World, database: Database
) -> None:
    orders = [await start_pack(world, range(2)), await start_pack(world, range(2, 18))]
    small, large = await count_statements(database, orders)
    assert large == small
    async with database.read() as session:
        stats = (await session.scalars(select(EpochStatsRow))).all()
        events = (await session.scalars(select(EventRow).where(EventRow.type == "stats"))).all()
    assert len(stats) == len(events) == 2 * 18
    assert {(one.attempt_id, one.seq) for one in stats} == {
        (one.data["attempt_id"], one.data["seq"]) for one in events
    }


async def test_the_tails_of_a_pack_are_compacted_and_summarised_together(
    world: World, database: Database
) -> None:
    orders = [await start_pack(world, range(2)), await start_pack(world, range(2, 18))]
    counts = []
    for order in orders:
        last = 0
        for _ in range(3):
            last = await send_pack(database, order, last + 1)
            await Summariser(database).tick()
        await send_pack(database, order, last + 1)
        with note_statements(database) as found:
            assert await Summariser(database).tick() == len(order.runs)
            moved = await CurveCompactor(database).tick(batches=1)
        assert moved == 4 * len(order.runs)
        counts.append(len(found))
    small, large = counts
    assert large == small
    async with database.read() as session:
        assert await session.scalar(select(func.count()).select_from(TailRow)) == 0
        summaries = (await session.scalars(select(SeriesSummaryRow))).all()
    assert sorted(one.points for one in summaries) == [4] * 18


async def test_runs_are_compacted_in_groups_of_bounded_size(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MAX_BATCHES", 4)
    order = await start_pack(world, range(5))
    last = 0
    for _ in range(3):
        last = await send_pack(database, order, last + 1)
    lengths = {run.run_id: 3 for run in order.runs}
    assert await compaction.compact_tails(database, lengths) == 15
    async with database.read() as session:
        assert await session.scalar(select(func.count()).select_from(TailRow)) == 0
        assert await session.scalar(select(func.sum(BlockRow.points))) == 15


async def test_the_judge_writes_many_runs_with_the_statements_of_two(world: World) -> None:
    """Judging each run apart took 21 statements and two transactions."""
    database = world.database
    written, read = [], []
    for seeds in (range(2), range(10, 10 + RUNS_PER_TRANSACTION)):
        order, last = await start_pack(world, seeds), 0
        for _ in range(12):
            last = await send_pack(database, order, last + 1)
        await Summariser(database).tick()
        with note_statements(database) as found:
            assert await Judge(database).tick() == len(order.runs)
        kinds = [one.partition(" ")[0] for one in found]
        written.append(sum(kind != "SELECT" for kind in kinds))
        read.append(len(kinds) / len(order.runs))
    assert written[0] == written[1] == 1
    assert read[1] < 8, read


async def test_a_run_that_cannot_be_judged_does_not_keep_others_from_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await start_pack(world, range(3))
    await send_pack(world.database, order, 1)
    await Summariser(world.database).tick()
    load, failing = health._load, order.runs[1].run_id

    async def fail_for_one(session: Any, run: Any, *rest: Any) -> Any:
        if run.id == failing:
            raise ValueError("unreadable")
        return await load(session, run, *rest)

    monkeypatch.setattr(health, "_load", fail_for_one)
    now = [0.0]
    judge = Judge(world.database, lambda: now[0])
    assert await judge.tick() == 2
    assert await judge.tick() == 0, "it is tried again after the pause"
    monkeypatch.undo()
    now[0] += PAUSE
    assert await judge.tick() == 1
