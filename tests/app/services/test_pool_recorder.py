"""What is recorded of the slots of pools: busy, and idle beside waiting jobs that fit them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from app.daemons.pool_recorder import KEEP_SECONDS, PoolRecorder
from app.db.clock import SKEW, now
from app.db.engine import Database
from app.db.models import JobRow, PoolHourRow
from app.domain.queue.decision import WorkerOffer
from app.domain.queue.idle_slots import WaitingJobs, count_idle_beside_waiting
from app.services.usage import reports
from palestra.contract.usage import PoolOccupancy, UsageQuery
from tests.app.services.test_pools import make_other_project, pause_pool, remove_project
from tests.support.server_fixture import World, advance_clock

both_databases = pytest.mark.both_databases(
    "Rows of hours are inserted once and locked by statements of each database.",
    of=("app.db.repositories.pool_hours",),
)


async def tick(database: Database, seconds: float = 10.0) -> None:
    advance_clock(seconds)
    await PoolRecorder(database).tick()


async def read_clock(database: Database) -> datetime:
    async with database.read() as session:
        return await now(session)


async def occupancy(world: World, pool: str = "default", **query: Any) -> PoolOccupancy:
    async with world.database.read() as session:
        found = await reports.report(session, world.admin, UsageQuery(pool=pool, **query))
    (one,) = found.pools
    return one


async def test_nothing_is_known_before_it_was_recorded(world: World, database: Database) -> None:
    found = await occupancy(world)
    assert (found.recorded_seconds, found.buckets) == (0.0, [])
    began = await read_clock(database)
    await PoolRecorder(database).tick()
    assert (await occupancy(world)).recorded_seconds == 0.0
    await tick(database)
    passed = await read_clock(database) - began
    assert 10 <= (await occupancy(world)).recorded_seconds <= passed.total_seconds()


@both_databases
async def test_busy_slots_and_those_idle_beside_waiting_jobs_are_added_up(
    world: World, database: Database
) -> None:
    worker = (await world.register(slots=4)).worker_id
    await world.start((await world.submit_one_job(seeds=[1])).id, worker)
    await PoolRecorder(database).tick()
    await tick(database)
    found = await occupancy(world)
    assert found.slot_seconds == pytest.approx(4 * found.recorded_seconds)
    assert found.busy_seconds == pytest.approx(found.recorded_seconds)
    assert found.idle_waiting_seconds == 0.0
    await world.submit_one_job(seeds=[2])
    await world.submit_one_job(seeds=[3])
    await pause_pool(world, "default", "the fans are loud")
    await tick(database)
    later = await occupancy(world)
    # Of three free slots, two jobs could have used two.
    recorded = later.recorded_seconds - found.recorded_seconds
    assert recorded >= 10
    assert later.idle_waiting_seconds == pytest.approx(2 * recorded)


async def test_jobs_that_do_not_fit_or_may_not_start_make_no_slot_idle(
    world: World, database: Database
) -> None:
    await world.register(slots=2)
    await PoolRecorder(database).tick()
    neighbour = await make_other_project(world)
    await world.submit(by=neighbour, seeds=[1])
    await remove_project(world, "default", "other")
    await world.submit_one_job(seeds=[2])
    async with database.write() as session:
        mine = JobRow.project_id == world.project_id
        await session.execute(update(JobRow).where(mine).values(gpus=8))
    later = await world.submit_one_job(seeds=[3])
    async with database.write() as session:
        await session.execute(
            update(JobRow).where(JobRow.id == later.id).values(open_dependencies=1)
        )
    await tick(database)
    found = await occupancy(world)
    assert found.recorded_seconds > 0
    assert found.idle_waiting_seconds == 0.0


@both_databases
async def test_two_processes_record_no_second_twice(world: World, database: Database) -> None:
    await world.register(slots=2)
    first, second = PoolRecorder(database), PoolRecorder(database)
    began = await read_clock(database)
    await first.tick()
    for _ in range(4):
        advance_clock(5)
        await first.tick()
        await second.tick()
    passed = await read_clock(database) - began
    assert 20 <= (await occupancy(world)).recorded_seconds <= passed.total_seconds()


async def test_time_without_a_server_is_unknown(world: World, database: Database) -> None:
    await world.register(slots=2)
    await PoolRecorder(database).tick()
    await tick(database, 3_000)
    assert (await occupancy(world)).recorded_seconds == pytest.approx(20, abs=0.1)


async def test_a_sample_is_divided_at_the_full_hour(world: World, database: Database) -> None:
    present = await read_clock(database)
    SKEW.seconds += 3_600 - present.minute * 60 - present.second - 9
    began = await read_clock(database)
    hour = began.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    await PoolRecorder(database).tick()
    await tick(database, 18)
    ended = await read_clock(database)
    async with database.read() as session:
        rows = (await session.scalars(select(PoolHourRow).order_by(PoolHourRow.hour))).all()
    before, after = (row.recorded_seconds for row in rows)
    assert before <= (hour - began).total_seconds()
    assert after <= (ended - hour).total_seconds()
    assert before + after >= 18


async def test_old_hours_are_deleted(world: World, database: Database) -> None:
    await PoolRecorder(database).tick()
    await tick(database)
    await tick(database, KEEP_SECONDS + 7_200)
    async with database.read() as session:
        assert await session.scalar(select(func.count()).select_from(PoolHourRow)) == 1


async def test_a_member_sees_the_pools_of_its_projects(world: World, database: Database) -> None:
    neighbour = await make_other_project(world, pool="lab")
    for _ in range(2):
        await tick(database)
    async with database.read() as session:
        found = await reports.report(session, neighbour, UsageQuery())
    assert [one.pool for one in found.pools] == ["lab"]


@pytest.mark.parametrize(
    ("free", "waiting", "idle"),
    [
        ({0: 8}, [(0, 1)], 1),
        ({0: 1}, [(0, 9)], 1),
        ({0: 4, 2: 1}, [(2, 5)], 1),
        ({0: 1, 2: 1}, [(0, 1), (2, 1)], 2),
        ({2: 1}, [(0, 1), (2, 1)], 1),
        ({0: 3}, [(1, 3)], 0),
        ({}, [(0, 3)], 0),
    ],
)
def test_idle_slots_are_counted_by_what_waiting_jobs_need(
    free: dict[int, int], waiting: list[tuple[int, int]], idle: int
) -> None:
    workers = [
        WorkerOffer(worker_id=f"w{gpus}", free_slots=slots, gpus=gpus, versions=frozenset({1}))
        for gpus, slots in free.items()
    ]
    jobs = [WaitingJobs(gpus=gpus, version=1, jobs=count) for gpus, count in waiting]
    assert count_idle_beside_waiting(workers, jobs) == idle
    assert count_idle_beside_waiting(workers, [WaitingJobs(gpus=0, version=9, jobs=3)]) == 0


@pytest.mark.parametrize(
    ("free", "gpus", "jobs", "idle"), [(5, 2, 9, 4), (1, 2, 9, 0), (4, 1, 3, 3)]
)
def test_a_waiting_job_counts_for_all_slots_that_it_needs(
    free: int, gpus: int, jobs: int, idle: int
) -> None:
    offer = WorkerOffer(
        worker_id="w",
        free_slots=free,
        slots=6,
        gpus=6,
        versions=frozenset({1}),
        takes_several_slots=True,
    )
    assert (
        count_idle_beside_waiting([offer], [WaitingJobs(gpus=gpus, version=1, jobs=jobs)]) == idle
    )
