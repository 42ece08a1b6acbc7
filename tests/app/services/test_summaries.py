"""Summaries of runs equal those of the points that count, whatever happened before."""

import math
import random

import pytest
from sqlalchemy import select

from app.daemons.summariser import Summariser
from app.db.engine import Database
from app.db.models import EventRow, SeriesNameRow, SeriesSummaryRow, SummaryProgressRow
from app.db.repositories import stale_summaries
from app.services.telemetry import compaction
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_supervised_definition
from tests.support.training import train

pytestmark = pytest.mark.both_databases(
    "Summaries are inserted or replaced by a statement of each database, under locks of rows.",
    of=(
        "app.db.upsert",
        "app.db.repositories.stale_summaries",
        "app.db.repositories.summaries",
    ),
)


Found = dict[str, tuple[float | None, float | None, float | None, int]]


async def read(database: Database, run_id: str) -> Found:
    """Returns last, best, mean of ten and count of each series of a run."""
    query = (
        select(SeriesNameRow.name, SeriesSummaryRow)
        .join(SeriesSummaryRow, SeriesSummaryRow.name_id == SeriesNameRow.id)
        .where(SeriesSummaryRow.run_id == run_id)
    )
    async with database.read() as session:
        return {
            name: (row.last, row.best, row.mean10, row.points)
            for name, row in await session.execute(query)
        }


def summarise(values: list[float]) -> tuple[float | None, float | None, float | None, int]:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None, None, None, len(values)
    recent = finite[-10:]
    mean = pytest.approx(math.fsum(recent) / len(recent), abs=1e-9)
    return finite[-1], max(finite), mean, len(values)


@pytest.mark.parametrize("seed", range(6))
async def test_any_history_gives_the_summaries_of_the_points_that_count(
    live_run: AttemptWithStore, seed: int
) -> None:
    chooser = random.Random(seed)
    summariser = Summariser(live_run.database)
    run, step, attempts, kept_step = live_run.run_id, 0, 1, None
    expected: dict[str, list[tuple[int, float]]] = {}
    for _ in range(25):
        action = chooser.choice(
            ("send", "send", "send", "evaluate", "compact", "tick", "snapshot", "resume")
        )
        if action == "send":
            content = []
            for name in chooser.sample(("loss", "entropy", "q/max"), chooser.randint(1, 3)):
                steps = [step + 1 + i for i in range(chooser.randint(1, 7))]
                values = [chooser.choice((chooser.uniform(-5, 5), math.nan)) for _ in steps]
                expected.setdefault(name, []).extend(zip(steps, values, strict=True))
                sent = ["NaN" if math.isnan(value) else value for value in values]
                content.append(records.make_points(run, name, steps, sent))
            step += 7
            await live_run.send(*content)
        elif action == "evaluate":
            step += 1
            mean = chooser.uniform(-5, 5)
            expected.setdefault("evaluation/mean", []).append((step, mean))
            await live_run.send(records.make_evaluation(run, step, mean))
        elif action == "compact":
            await compaction.compact_tail(live_run.database, run)
        elif action == "tick":
            await summariser.tick()
        elif action == "snapshot":
            step += 1
            await live_run.write_snapshot(step)
            kept_step = step
        elif kept_step is not None and attempts < 2:
            attempts += 1
            await live_run.resume(attempts)
            expected = {
                name: [point for point in points if point[0] <= kept_step]
                for name, points in expected.items()
            }
            step = kept_step
    await summariser.tick()
    found = await read(live_run.database, run)
    wanted = {
        name: summarise([value for _, value in points])
        for name, points in expected.items()
        if points
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert {name for name in found if not name.startswith("evaluation/")} <= wanted.keys()
    assert await summariser.tick() == 0
    async with live_run.database.write() as session:
        assert await stale_summaries.mark_all(session) == 1
    assert await summariser.tick() == 1
    assert await read(live_run.database, run) == found


async def test_all_is_built_again_where_events_were_deleted_before_they_were_read(
    live_run: AttemptWithStore,
) -> None:
    database, run = live_run.database, live_run.run_id
    await live_run.send(records.make_points(run, "loss", [1, 2]))
    async with database.write() as session:
        newest = (await session.scalars(select(EventRow).order_by(EventRow.id.desc()))).first()
        for event in await session.scalars(select(EventRow)):
            if newest is not None and event.id != newest.id:
                await session.delete(event)
        if newest is not None:
            newest.type = "log"
    await Summariser(database).tick()
    assert (await read(database, run))["loss"] == (2.0, 2.0, 1.5, 2)


async def test_two_summarisers_count_each_point_once(live_run: AttemptWithStore) -> None:
    database, run = live_run.database, live_run.run_id
    await live_run.send(records.make_points(run, "loss", [1, 2]))
    await Summariser(database).tick()
    await live_run.send(records.make_points(run, "loss", [3]))
    async with database.write() as session:
        progress = (await session.scalars(select(SummaryProgressRow))).one()
        progress.event_id = 0
    await Summariser(database).tick()
    await Summariser(database).tick()
    assert (await read(database, run))["loss"] == (3.0, 3.0, 2.0, 3)


async def test_the_best_value_of_a_minimised_metric_is_the_lowest(world: World) -> None:
    registered = await world.register()
    await world.submit(make_supervised_definition())
    (job,) = await world.list_jobs()
    content = [
        {**records.make_evaluation("", step, -loss, update=step), "metrics": {"loss": loss}}
        for step, loss in ((1, 3.0), (2, 1.0), (3, 2.0))
    ]
    run = await train(
        world, job, (registered.worker_id, 0), content, (Outcome.SUCCEEDED, Cause.BUDGET)
    )
    await Summariser(world.database).tick()
    found = await read(world.database, run)
    assert found["evaluation/loss"] == (2.0, 1.0, 2.0, 3)
    assert found["evaluation/mean"] == (-2.0, -1.0, -2.0, 3)
