import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.daemons import uptime
from app.daemons.compactor import EVENT_SECONDS, Compactor
from app.daemons.dispatcher import BellError, Dispatcher
from app.daemons.reaper import Reaper
from app.db.engine import Database
from app.domain.errors import ConflictError
from app.services.artifacts.blob_store import BlobStore
from app.services.events import event_log
from app.services.jobs import dispatch_plan
from app.services.jobs.dispatch_plan import ReadyJob
from app.settings import SettingsError, load_settings
from palestra.contract.states import Cause, JobState, Outcome
from tests.support.server_fixture import World, pass_time


@dataclass
class CountingBell:
    """Counts doorbells; may be out of order."""

    rung: list[ReadyJob] = field(default_factory=list)
    broken: bool = False

    def ring(self, job: ReadyJob) -> None:
        if self.broken:
            raise BellError("broken")
        self.rung.append(job)

    @property
    def jobs(self) -> list[str]:
        return [job.job_id for job in self.rung]


@pytest.fixture
def bell() -> CountingBell:
    return CountingBell()


@pytest.fixture
def dispatcher(database: Database, bell: CountingBell) -> Dispatcher:
    return Dispatcher(database, bell, ring_seconds=30)


async def test_as_many_doorbells_as_free_slots(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    await world.submit(seeds=list(range(6)))
    assert await dispatcher.tick() == 0
    worker = (await world.register(slots=2)).worker_id
    assert await dispatcher.tick() == 2
    assert await dispatcher.tick() == 0
    first, second = bell.rung
    attempt = (await world.start(first.job_id, worker, slot=0)).work_order.attempt_id
    assert await dispatcher.tick() == 0
    await world.start(second.job_id, worker, slot=1)
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    assert await dispatcher.tick() == 1
    assert [job.expected_attempt for job in bell.rung] == [1, 1, 1]


async def test_a_doorbell_that_nobody_answers_is_rung_again_for_ever(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    await world.register(slots=1)
    job = await world.one_job()
    assert await dispatcher.tick() == 1
    for _ in range(3):
        pass_time(15)
        await beat(world)
        assert await dispatcher.tick() == 0
        pass_time(16)
        await beat(world)
        assert await dispatcher.tick() == 1
    assert bell.jobs == [job.id] * 4


async def beat(world: World) -> None:
    async with world.database.read() as session:
        from app.services.workers import workers

        found = (await workers.list_workers(session, world.admin)).items
    for worker in found:
        await world.heartbeat(worker.id)


async def test_duplicate_doorbells_start_one_attempt(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    worker = (await world.register(slots=10)).worker_id
    await world.one_job()
    await dispatcher.tick()
    (ring,) = bell.rung
    answers = await asyncio.gather(
        *(
            world.claim(ring.job_id, worker, attempt=ring.expected_attempt, slot=slot)
            for slot in range(10)
        ),
        return_exceptions=True,
    )
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert all(
        isinstance(answer, ConflictError) for answer in answers if isinstance(answer, BaseException)
    )


async def test_a_broken_broker_loses_nothing(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    await world.register()
    job = await world.one_job()
    bell.broken = True
    with pytest.raises(BellError):
        await dispatcher.tick()
    bell.broken = False
    assert await dispatcher.tick() == 1
    assert bell.jobs == [job.id]


async def test_a_crash_between_ring_and_mark_rings_again(world: World, database: Database) -> None:
    await world.register()
    job = await world.one_job()
    for _ in range(2):
        async with database.read() as session:
            assert [ready.job_id for ready in await dispatch_plan.plan(session, 30)] == [job.id]


async def test_priority_goes_before_fair_share_before_age(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    await world.submit(seeds=[0, 1, 2])
    await world.submit(seeds=[10], by=world.other)
    await world.submit(seeds=[20], priority=5)
    queued = await world.jobs()
    seeds = {job.id: (await world.run(job.run_ids[0])).seed for job in queued}
    assert [seeds[job.id] for job in sorted(queued, key=lambda job: job.position or 0)] == [
        20,
        0,
        10,
        1,
        2,
    ]
    await world.register(slots=3)
    await dispatcher.tick()
    assert [seeds[job_id] for job_id in bell.jobs] == [20, 0, 10]


async def test_who_already_runs_stands_behind(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    worker = (await world.register(slots=2)).worker_id
    running = await world.one_job()
    await world.start(running.id, worker)
    await world.submit(seeds=[1])
    await world.submit(seeds=[10], by=world.other)
    mine, theirs = (await world.jobs(state=JobState.QUEUED))[:2]
    assert theirs.position == 1
    assert mine.position == 2
    await dispatcher.tick()
    assert bell.jobs == [theirs.id]


async def test_only_workers_that_can_take_a_job_are_rung(
    world: World, dispatcher: Dispatcher, bell: CountingBell
) -> None:
    await world.register()
    await world.one_job(resources={"gpus": 1})
    small = (await world.submit(seeds=[4]))[0]
    (job,) = [
        found for found in await world.jobs(experiment_id=small.id) if found.resources.gpus == 0
    ]
    await dispatcher.tick()
    assert bell.jobs == [job.id]
    large = next(found for found in await world.jobs() if found.resources.gpus == 1)
    assert large.waiting is not None
    assert "offers 1 GPUs" in large.waiting


async def test_silent_and_draining_workers_are_not_rung(
    world: World, dispatcher: Dispatcher, database: Database
) -> None:
    from app.services.workers import workers

    worker = (await world.register()).worker_id
    await world.one_job()
    pass_time(31)
    assert await dispatcher.tick() == 0
    await world.heartbeat(worker)
    async with database.write() as session:
        await workers.drain(session, world.admin, worker)
    assert await dispatcher.tick() == 0
    async with database.write() as session:
        await workers.drain(session, world.admin, worker, draining=False)
    assert await dispatcher.tick() == 1


async def test_a_commit_wakes_the_dispatcher_at_once(
    world: World, database: Database, bell: CountingBell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.daemons.dispatcher.POLL_SECONDS", 3_600.0)
    await world.register()
    dispatcher = Dispatcher(database, bell, ring_seconds=30)
    work = asyncio.create_task(dispatcher.run())
    try:
        await asyncio.sleep(0.1)
        job = await world.one_job()
        async with asyncio.timeout(60):
            while not bell.rung:
                await asyncio.sleep(0.005)
        assert bell.jobs == [job.id]
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


class Clock:
    """Time of this process; moves together with the database's."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        pass_time(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def reaper(database: Database, clock: Clock) -> Reaper:
    await uptime.count_once(database)
    return Reaper(database, reclaim_seconds=100, monotonic=clock)


async def watch(reaper: Reaper, clock: Clock, seconds: float, *, is_up: bool = True) -> int:
    """Lets the reaper look every ten seconds, of a server that is up or not.

    Returns how many attempts it gave up.
    """
    lost = 0
    for _ in range(int(seconds / 10)):
        clock.advance(10)
        if is_up:
            await uptime.count_once(reaper._database, period=6)
        lost += await reaper.tick()
    return lost


async def test_a_silent_attempt_is_given_up_and_its_job_queued_again(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    job = await world.one_job()
    await world.start(job.id, worker)
    await reaper.tick()
    assert await watch(reaper, clock, 90) == 0
    assert (await world.job(job.id)).state is JobState.RUNNING
    assert await watch(reaper, clock, 30) == 1
    lost = await world.job(job.id)
    assert (lost.state, lost.cause) == (JobState.QUEUED, Cause.LEASE_EXPIRED)


async def test_an_attempt_that_renews_is_never_given_up(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    attempt = (await world.start((await world.one_job()).id, worker)).work_order.attempt_id
    await reaper.tick()
    for _ in range(10):
        assert await watch(reaper, clock, 60) == 0
        await world.renew(attempt)


async def test_a_fresh_reaper_waits_for_the_whole_limit(
    world: World, database: Database, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.start((await world.one_job()).id, worker)
    clock.advance(5_000)
    reaper = Reaper(database, reclaim_seconds=100, monotonic=clock)
    assert await reaper.tick() == 0
    assert await watch(reaper, clock, 90) == 0
    assert await watch(reaper, clock, 20) == 1


async def test_time_in_which_the_reaper_was_away_does_not_count(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.start((await world.one_job()).id, worker)
    assert await watch(reaper, clock, 90) == 0
    clock.advance(3_600)
    assert await reaper.tick() == 0
    assert await watch(reaper, clock, 10) == 0
    assert await watch(reaper, clock, 20) == 1


async def test_time_in_which_no_server_is_up_does_not_count(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    """Line 15.7: the reaper may live in another process than the server that workers speak to."""
    worker = (await world.register()).worker_id
    job = await world.one_job()
    await world.start(job.id, worker)
    await reaper.tick()
    assert await watch(reaper, clock, 60) == 0
    assert await watch(reaper, clock, 3_600, is_up=False) == 0
    assert await watch(reaper, clock, 20) == 0
    assert (await world.job(job.id)).state is JobState.RUNNING
    assert await watch(reaper, clock, 30) == 1


async def test_of_a_freeze_of_the_whole_server_next_to_nothing_counts(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    """Line 15.7: a server that was stopped for a while and goes on gives its workers the time that
    they had left.
    """
    worker = (await world.register()).worker_id
    await world.start((await world.one_job()).id, worker)
    await reaper.tick()
    for _ in range(8):
        assert await watch(reaper, clock, 10) == 0
        clock.advance(29)
    assert await watch(reaper, clock, 40) == 1


def test_a_dead_workers_job_waits_two_minutes_by_default() -> None:
    """Line 15.7."""
    assert load_settings({}, environ={}).reclaim_seconds == 120
    with pytest.raises(SettingsError, match="reclaim_seconds 50 must be at least lease_seconds 60"):
        load_settings({"reclaim_seconds": "50"}, environ={})


async def test_a_step_of_the_databases_clock_gives_nothing_up(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.start((await world.one_job()).id, worker)
    assert await watch(reaper, clock, 120) == 1
    again = await world.jobs()
    await world.start(again[0].id, worker, attempt=2)
    pass_time(7_200)
    assert await reaper.tick() == 0
    assert await watch(reaper, clock, 90) == 0


async def test_a_mass_expiry_is_braked_and_then_acted_upon(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.submit(seeds=[0, 1, 2])
    attempts = [
        (await world.start(job.id, worker, slot=slot)).work_order.attempt_id
        for slot, job in enumerate(await world.jobs())
    ]
    assert await watch(reaper, clock, 110) == 0
    assert await watch(reaper, clock, 80) == 0
    await world.renew(attempts[0])
    assert await watch(reaper, clock, 40) == 2


async def test_the_brake_lets_go_when_the_workers_come_back(
    world: World, reaper: Reaper, clock: Clock
) -> None:
    worker = (await world.register()).worker_id
    await world.submit(seeds=[0, 1, 2])
    attempts = [
        (await world.start(job.id, worker, slot=slot)).work_order.attempt_id
        for slot, job in enumerate(await world.jobs())
    ]
    assert await watch(reaper, clock, 150) == 0
    for attempt in attempts:
        await world.renew(attempt)
    assert await watch(reaper, clock, 90) == 0
    assert {job.state for job in await world.jobs()} == {JobState.RUNNING}


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
    job = await world.one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.release(attempt, outcome, cause)
    before = await world.job(job.id)
    assert await watch(reaper, clock, 300) == 0
    assert await world.job(job.id) == before


async def test_a_renewal_between_look_and_act_saves_the_attempt(
    world: World, database: Database
) -> None:
    from app.services.attempts import endings

    worker = (await world.register()).worker_id
    job = await world.one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    pass_time(200)
    await world.renew(attempt)
    async with database.write() as session:
        assert not await endings.as_expired(session, attempt, 100, "daemon:reaper")
    assert (await world.job(job.id)).state is JobState.RUNNING


async def test_old_events_and_answers_are_forgotten_and_the_cursor_stays(
    world: World, database: Database, tmp_path: Path
) -> None:
    await world.submit(seeds=[0, 1])
    compactor = Compactor(database, BlobStore(tmp_path / "blobs"), idempotency_seconds=60)
    assert await compactor.tick() == 0
    async with database.read() as session:
        before = await event_log.cursor(session)
    pass_time(EVENT_SECONDS + 1)
    assert await compactor.tick() > 0
    async with database.read() as session:
        assert await event_log.cursor(session) == before
