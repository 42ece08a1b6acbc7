import pytest

from app.daemons import uptime
from app.daemons.reaper import Reaper
from app.db.engine import Database
from app.settings import SettingsError, load_settings
from palestra.contract.states import Cause, JobState, Outcome
from tests.support.server_fixture import World, advance_clock

both_databases = pytest.mark.both_databases(
    "The time of the server is kept in a row that is locked on PostgreSQL.",
    of=(
        "app.db.clock",
        "app.db.repositories.uptime",
    ),
)


class Clock:
    """Monotonic time of this process; advances together with the database's clock."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        advance_clock(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def reaper(database: Database, clock: Clock) -> Reaper:
    await uptime.count_once(database)
    return Reaper(database, reclaim_seconds=100, monotonic=clock)


async def run_reaper(reaper: Reaper, clock: Clock, seconds: float, *, is_up: bool = True) -> int:
    """Runs the reaper every ten seconds for `seconds`, with a live server or without one.

    Returns the number of attempts that it marked as lost.
    """
    lost = 0
    for _ in range(int(seconds / 10)):
        clock.advance(10)
        if is_up:
            await uptime.count_once(reaper._database, period=6)
        lost += await reaper.tick()
    return lost


async def test_an_attempt_without_renewals_is_lost_and_its_job_queued_again(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    job = await world.submit_one_job()
    await world.start(job.id, worker)
    await reaper.tick()
    assert await run_reaper(reaper, clock, 90) == 0
    assert (await world.job(job.id)).state is JobState.RUNNING
    assert await run_reaper(reaper, clock, 30) == 1
    lost = await world.job(job.id)
    assert (lost.state, lost.cause) == (JobState.QUEUED, Cause.LEASE_EXPIRED)


async def test_an_attempt_that_renews_is_never_lost(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    attempt = (await world.start((await world.submit_one_job()).id, worker)).work_order.attempt_id
    await reaper.tick()
    for _ in range(10):
        assert await run_reaper(reaper, clock, 60) == 0
        await world.renew(attempt)


async def test_a_fresh_reaper_waits_for_the_whole_limit(
    world: World, database: Database, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.start((await world.submit_one_job()).id, worker)
    clock.advance(5_000)
    reaper = Reaper(database, reclaim_seconds=100, monotonic=clock)
    assert await reaper.tick() == 0
    assert await run_reaper(reaper, clock, 90) == 0
    assert await run_reaper(reaper, clock, 20) == 1


async def test_time_without_a_reaper_does_not_count(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.start((await world.submit_one_job()).id, worker)
    assert await run_reaper(reaper, clock, 90) == 0
    clock.advance(3_600)
    assert await reaper.tick() == 0
    assert await run_reaper(reaper, clock, 10) == 0
    assert await run_reaper(reaper, clock, 20) == 1


@both_databases
async def test_time_without_a_server_does_not_count(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    """The reaper may run in another process than the server that workers send renewals to."""
    worker = (await world.register()).worker_id
    job = await world.submit_one_job()
    await world.start(job.id, worker)
    await reaper.tick()
    assert await run_reaper(reaper, clock, 60) == 0
    assert await run_reaper(reaper, clock, 3_600, is_up=False) == 0
    assert await run_reaper(reaper, clock, 20) == 0
    assert (await world.job(job.id)).state is JobState.RUNNING
    assert await run_reaper(reaper, clock, 30) == 1


async def test_time_in_which_the_server_process_was_suspended_does_not_count(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    """After a suspended server continues, each worker has its remaining time to renew."""
    worker = (await world.register()).worker_id
    await world.start((await world.submit_one_job()).id, worker)
    await reaper.tick()
    for _ in range(8):
        assert await run_reaper(reaper, clock, 10) == 0
        clock.advance(29)
    assert await run_reaper(reaper, clock, 40) == 1


def test_the_default_reclaim_time_is_two_minutes() -> None:
    assert load_settings({}, environ={}).reclaim_seconds == 120
    with pytest.raises(SettingsError, match="reclaim_seconds 50 must be at least lease_seconds 60"):
        load_settings({"reclaim_seconds": "50"}, environ={})


@both_databases
async def test_a_jump_of_the_databases_clock_loses_no_attempt(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.start((await world.submit_one_job()).id, worker)
    assert await run_reaper(reaper, clock, 120) == 1
    again = await world.list_jobs()
    await world.start(again[0].id, worker, attempt=2)
    advance_clock(7_200)
    assert await reaper.tick() == 0
    assert await run_reaper(reaper, clock, 90) == 0


async def test_a_mass_expiry_is_delayed_before_attempts_are_lost(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.submit(seeds=[0, 1, 2])
    attempts = [
        (await world.start(job.id, worker, slot=slot)).work_order.attempt_id
        for slot, job in enumerate(await world.list_jobs())
    ]
    assert await run_reaper(reaper, clock, 110) == 0
    assert await run_reaper(reaper, clock, 80) == 0
    await world.renew(attempts[0])
    assert await run_reaper(reaper, clock, 40) == 2


async def test_a_delayed_mass_expiry_ends_when_the_workers_renew(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.submit(seeds=[0, 1, 2])
    attempts = [
        (await world.start(job.id, worker, slot=slot)).work_order.attempt_id
        for slot, job in enumerate(await world.list_jobs())
    ]
    assert await run_reaper(reaper, clock, 150) == 0
    for attempt in attempts:
        await world.renew(attempt)
    assert await run_reaper(reaper, clock, 90) == 0
    assert {job.state for job in await world.list_jobs()} == {JobState.RUNNING}


_ENDS = [
    (Outcome.SUCCEEDED, Cause.BUDGET),
    (Outcome.CANCELLED, Cause.USER),
    (Outcome.FAILED, Cause.USER_EXCEPTION),
]


@pytest.mark.parametrize(("outcome", "cause"), _ENDS)
async def test_the_reaper_never_touches_a_finished_job(
    world: World, reaper: Reaper, clock: Clock, outcome: Outcome, cause: Cause
) -> None:
    worker = (await world.register()).worker_id
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.release(attempt, outcome, cause)
    before = await world.job(job.id)
    assert await run_reaper(reaper, clock, 300) == 0
    assert await world.job(job.id) == before


@both_databases
async def test_a_renewal_between_check_and_update_keeps_the_attempt(
    world: World, database: Database
) -> None:
    from app.services.attempts import endings

    worker = (await world.register()).worker_id
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    advance_clock(200)
    await world.renew(attempt)
    async with database.write() as session:
        assert not await endings.end_as_expired(session, attempt, 100, "daemon:reaper")
    assert (await world.job(job.id)).state is JobState.RUNNING
