"""Shares of a pool: what projects and persons are entitled to, what they used, and who sees it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from app.domain.errors import NotFoundError
from app.domain.principal import Principal
from app.domain.usage_periods import UsagePeriod, divide, measure
from app.services.usage import shares
from app.services.workers import pools
from palestra.contract.pools import PoolAdmission, PoolChange
from palestra.contract.states import Cause, Outcome
from palestra.contract.usage import PoolSharesView, ProjectShareView
from tests.app.services.test_pools import make_other_project, submit_definition
from tests.support.server_fixture import World, advance_clock

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


async def run_for(world: World, job_id: str, worker: str, seconds: float) -> None:
    attempt = (await world.start(job_id, worker)).work_order.attempt_id
    advance_clock(seconds)
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    await world.send_heartbeat(worker)


async def show(world: World, by: Principal) -> PoolSharesView:
    async with world.database.read() as session:
        return await shares.show(session, by, "default")


async def by_project(world: World, by: Principal) -> dict[str | None, ProjectShareView]:
    return {one.project: one for one in (await show(world, by)).projects}


async def use_pool(world: World) -> Principal:
    """Lets `admin` use 300 s, `bea` 100 s and another project with share 3 600 s of the pool."""
    neighbour = await make_other_project(world)
    async with world.database.write() as session:
        await pools.admit(session, world.admin, "default", "other", PoolAdmission(share=3.0))
    worker = (await world.register(slots=1)).worker_id
    await run_for(world, (await world.submit_one_job(seeds=[1])).id, worker, 300)
    await run_for(world, (await world.submit_one_job(seeds=[2], by=world.other)).id, worker, 100)
    theirs = await submit_definition(world, neighbour, seeds=[3])
    await run_for(world, theirs.id, worker, 600)
    return neighbour


async def test_an_administrator_sees_the_parts_of_all_projects_and_persons(
    world: World, passed_seconds: Callable[[], float]
) -> None:
    await use_pool(world)
    found = await by_project(world, world.admin)
    assert set(found) == {"default", "other"}
    mine, theirs = found["default"], found["other"]
    assert (mine.entitled, theirs.entitled) == (0.25, 0.75)
    assert mine.used_seconds == pytest.approx(400, abs=passed_seconds())
    assert mine.used == pytest.approx(0.4, abs=0.01)
    assert theirs.decayed == pytest.approx(0.6, abs=0.01)
    persons = {one.user: one for one in mine.persons}
    assert set(persons) == {"admin", "bea"}
    assert persons["bea"].entitled == 0.125
    assert persons["bea"].used == pytest.approx(0.1, abs=0.01)
    assert sum(one.used_seconds for one in mine.persons) == pytest.approx(mine.used_seconds)
    assert [one.user for one in theirs.persons] == ["user-of-other"]


async def test_a_member_sees_other_projects_as_one_without_names(world: World) -> None:
    neighbour = await use_pool(world)
    found = await by_project(world, neighbour)
    assert set(found) == {"other", None}
    rest = found[None]
    assert (rest.entitled, rest.name, rest.persons) == (0.25, None, [])
    assert rest.used == pytest.approx(0.4, abs=0.01)
    text = (await show(world, neighbour)).model_dump_json()
    assert "admin" not in text
    assert "bea" not in text
    assert world.project_id not in text


async def test_a_pool_that_shows_names_names_the_projects_and_no_persons(world: World) -> None:
    neighbour = await use_pool(world)
    async with world.database.write() as session:
        await pools.change(session, world.admin, "default", PoolChange(shows_names=True))
    found = await by_project(world, neighbour)
    assert set(found) == {"default", "other"}
    assert found["default"].persons == []


async def test_a_live_job_counts_and_an_old_one_counts_half(
    world: World, passed_seconds: Callable[[], float]
) -> None:
    worker = (await world.register(slots=2)).worker_id
    await run_for(world, (await world.submit_one_job(seeds=[1])).id, worker, 1_000)
    advance_clock(7 * 86_400)
    await world.send_heartbeat(worker)
    job = await world.submit_one_job(seeds=[2], by=world.other)
    await world.start(job.id, worker, slot=1)
    advance_clock(200)
    (project,) = (await show(world, world.admin)).projects
    passed = passed_seconds()
    seconds = {one.user: (one.used_seconds, one.decayed_seconds) for one in project.persons}
    assert seconds["bea"] == (pytest.approx(200, abs=passed),) * 2
    # The old job ended just before the period began, but for the 200 s that passed since.
    assert seconds["admin"][1] == pytest.approx(500, abs=1 + passed)
    assert project.entitled == 1.0


async def test_a_pool_without_usage_has_no_parts_of_it(world: World) -> None:
    (project,) = (await show(world, world.admin)).projects
    assert (project.used_seconds, project.used, project.decayed) == (0.0, None, None)
    assert (project.entitled, project.persons) == (1.0, [])


async def test_a_pool_of_others_does_not_exist(world: World) -> None:
    neighbour = await make_other_project(world, pool=None)
    with pytest.raises(NotFoundError):
        await show(world, neighbour)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (timedelta(minutes=10), timedelta(minutes=20), {0: 1_200.0}),
        (timedelta(minutes=50), timedelta(minutes=70), {0: 1_200.0, 1: 1_200.0}),
        (timedelta(minutes=-30), timedelta(hours=5), {0: 7_200.0, 1: 7_200.0, 2: 7_200.0}),
        (timedelta(0), timedelta(hours=1), {0: 7_200.0}),
    ],
)
def test_an_interval_is_divided_at_the_bounds_of_buckets(
    start: timedelta, end: timedelta, expected: dict[int, float]
) -> None:
    period = UsagePeriod(since=NOON, until=NOON + timedelta(hours=3), bucket_seconds=3_600)
    interval = measure(period, NOON + start, NOON + end, devices=2)
    assert dict(divide(interval, period.width)) == expected


def test_buckets_begin_at_hours_days_and_mondays_of_utc() -> None:
    since = NOON + timedelta(minutes=17)
    until = since + timedelta(days=9)
    week = UsagePeriod(since=since, until=until, bucket_seconds=7 * 86_400)
    assert (week.origin, week.buckets) == (datetime(2026, 3, 2, tzinfo=UTC), 2)
    assert (week.start_of(0), week.end_of(0)) == (since, datetime(2026, 3, 9, tzinfo=UTC))
    assert week.end_of(1) == until
    whole = UsagePeriod(since=since, until=until)
    assert (whole.origin, whole.buckets, whole.end_of(0)) == (since, 1, until)
