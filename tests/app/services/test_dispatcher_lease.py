import asyncio
from dataclasses import dataclass, field

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import DBAPIError

from app.bus import MemoryBus
from app.daemons.dispatcher import Dispatcher, DispatchError
from app.db.engine import Database, Session
from app.db.models import DispatcherLeaseRow, JobRow
from app.services.jobs import dispatch_plan
from app.services.jobs.dispatch_plan import AssignedJob, PoolAssignments
from app.services.queue.dispatcher_lease import (
    TTL_SECONDS,
    DispatcherLease,
    LeaseLostError,
    find_dispatcher,
)
from app.services.queue.equipped_workers import EquippedWorkers
from tests.support.server_fixture import World, advance_clock
from tests.support.waiting import until

pytestmark = pytest.mark.both_databases(
    "Several processes share a database on PostgreSQL alone, and a lock decides between them.",
    of=(
        "app.db.repositories.dispatcher_lease",
        "app.services.queue.dispatcher_lease",
    ),
)


@dataclass
class Clock:
    """The clock of one dispatcher's process."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class OneDispatcher:
    """A dispatcher as if it were a process of its own."""

    database: Database
    name: str
    clock: Clock = field(default_factory=Clock)
    sent: list[str] = field(default_factory=list)
    breaks: bool = False

    def __post_init__(self) -> None:
        lease = DispatcherLease(self.database, self.name, monotonic=self.clock)
        self.dispatcher = Dispatcher(self.database, self, assignment_seconds=30, lease=lease)

    @property
    def lease(self) -> DispatcherLease:
        return self.dispatcher.lease

    def send(self, job: AssignedJob) -> None:
        if self.breaks:
            raise DispatchError("broken")
        self.sent.append(job.job_id)

    async def tick(self) -> int:
        return await self.dispatcher.tick()


@pytest.fixture
def first(database: Database) -> OneDispatcher:
    return OneDispatcher(database, "first")


@pytest.fixture
def second(database: Database) -> OneDispatcher:
    return OneDispatcher(database, "second")


async def read_row(database: Database) -> DispatcherLeaseRow:
    async with database.read() as session:
        return (await session.scalars(select(DispatcherLeaseRow))).one()


async def list_assigned(database: Database) -> list[str]:
    async with database.read() as session:
        query = select(JobRow.id).where(JobRow.assigned_worker_id.is_not(None))
        return list(await session.scalars(query))


def is_shared(database: Database) -> bool:
    return database.engine.dialect.name == "postgresql"


def let_pass(seconds: float, *dispatchers: OneDispatcher) -> None:
    """Advances the database's clock, and those of the dispatchers' processes."""
    advance_clock(seconds)
    for one in dispatchers:
        one.clock.seconds += seconds


async def hand_over(first: OneDispatcher, second: OneDispatcher) -> None:
    """Lets the second dispatcher take a lease that the first does not renew."""
    let_pass(TTL_SECONDS + 0.1, first, second)
    assert await second.lease.hold()


async def test_one_of_two_dispatchers_assigns(
    world: World, database: Database, first: OneDispatcher, second: OneDispatcher
) -> None:
    if not is_shared(database):
        pytest.skip("a second process on SQLite takes the lease at its start")
    await world.register(slots=4)
    await world.submit(seeds=[0, 1])
    assert await first.tick() == 2
    await world.submit(seeds=[2])
    assert await second.tick() == 0
    let_pass(3, first, second)
    assert await first.lease.hold()
    let_pass(3, first, second)
    assert not await second.lease.hold()
    assert await first.tick() == 1
    assert second.sent == []
    assert (await read_row(database)).holder == "first"


async def test_a_silent_dispatcher_is_replaced_after_its_time(
    world: World, database: Database, first: OneDispatcher, second: OneDispatcher
) -> None:
    if not is_shared(database):
        pytest.skip("a second process on SQLite takes the lease at its start")
    assert await first.lease.hold()
    let_pass(TTL_SECONDS - 0.5, second)
    assert not await second.lease.hold()
    let_pass(1, second)
    assert await second.lease.hold()
    assert (await read_row(database)).epoch == 2


async def test_a_dispatcher_that_lost_the_lease_after_its_decision_writes_nothing(
    world: World,
    database: Database,
    first: OneDispatcher,
    second: OneDispatcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await world.register(slots=1)
    await world.submit_one_job()
    assert await first.lease.hold()
    decide = dispatch_plan.decide

    async def decide_slowly(session: Session, equipped: EquippedWorkers) -> list[PoolAssignments]:
        decided = await decide(session, equipped)
        await hand_over(first, second)
        return decided

    monkeypatch.setattr(dispatch_plan, "decide", decide_slowly)
    with pytest.raises(LeaseLostError):
        await first.tick()
    assert await list_assigned(database) == []
    assert first.sent == []
    # It asks before it decides again, and finds that another one holds the lease.
    monkeypatch.setattr(dispatch_plan, "decide", decide)
    assert await first.tick() == 0
    assert await second.tick() == 1


async def test_a_dispatcher_that_lost_the_lease_takes_no_assignment_back(
    world: World,
    database: Database,
    first: OneDispatcher,
    second: OneDispatcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job()
    first.breaks = True
    assign = dispatch_plan.assign

    async def assign_and_lose(
        session: Session, decisions: list[PoolAssignments], seconds: float
    ) -> list[AssignedJob]:
        monkeypatch.setattr(first, "send", lose_lease)
        return await assign(session, decisions, seconds)

    def lose_lease(_: AssignedJob) -> None:
        first.lease.epoch = 0  # of a holder before
        raise DispatchError("broken")

    monkeypatch.setattr(dispatch_plan, "assign", assign_and_lose)
    with pytest.raises(LeaseLostError):
        await first.tick()
    assert await list_assigned(database) == [job.id]


async def test_a_dispatcher_whose_time_passed_unused_goes_on(
    world: World, database: Database, first: OneDispatcher
) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job()
    assert await first.lease.hold()
    let_pass(20, first)
    assert await first.tick() == 1
    assert (first.sent, (await read_row(database)).epoch) == ([job.id], 1)


async def test_a_released_lease_is_taken_at_once(
    world: World, database: Database, first: OneDispatcher, second: OneDispatcher
) -> None:
    assert await first.lease.hold()
    await first.lease.release()
    assert await second.lease.hold()
    assert (await read_row(database)).holder == "second"


async def test_a_cancelled_dispatcher_releases_the_lease(
    world: World, database: Database, first: OneDispatcher
) -> None:
    work = asyncio.create_task(first.dispatcher.run(MemoryBus()))
    await until(lambda: first.lease.epoch is not None)
    assert await find_dispatcher(database) == "elsewhere"
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert await find_dispatcher(database) == "nowhere"


async def test_a_lease_whose_transaction_fails_is_not_held(
    world: World, database: Database, first: OneDispatcher
) -> None:
    def fail(_: object) -> None:
        raise OSError("no space left")

    event.listen(database.writer.sync_engine, "commit", fail)
    try:
        with pytest.raises(OSError, match="no space left"):
            await first.lease.hold()
    finally:
        event.remove(database.writer.sync_engine, "commit", fail)
    assert first.lease.epoch is None


async def test_a_server_says_where_jobs_are_assigned(world: World, database: Database) -> None:
    assert await find_dispatcher(database) == "nowhere"
    own = DispatcherLease(database)
    assert await own.hold()
    assert await find_dispatcher(database) == "here"


async def test_of_ten_dispatchers_one_takes_a_free_lease(world: World, database: Database) -> None:
    if not is_shared(database):
        pytest.skip("a second process on SQLite takes the lease at its start")
    dispatchers = [OneDispatcher(database, f"number {number}") for number in range(10)]
    assert sum(await asyncio.gather(*(one.lease.hold() for one in dispatchers))) == 1


async def test_on_sqlite_a_restarted_process_does_not_wait(
    world: World, database: Database, first: OneDispatcher, second: OneDispatcher
) -> None:
    if is_shared(database):
        pytest.skip("of SQLite")
    assert await first.lease.hold()
    assert await second.lease.hold()
    # No later call of the first one takes it back.
    first.clock.seconds += 10
    with pytest.raises(LeaseLostError):
        async with database.write() as session:
            await first.lease.confirm(session)
    assert not await first.lease.hold()


async def test_a_dispatcher_stopped_within_a_transaction_is_replaced(
    world: World, database: Database, first: OneDispatcher, second: OneDispatcher
) -> None:
    if not is_shared(database):
        pytest.skip("on SQLite there is one process")
    assert 2 * TTL_SECONDS <= 8, "its transaction ends after this time, and its lease"
    assert await first.lease.hold()

    async def ask() -> bool:
        second.clock.seconds += 1
        return await second.lease.hold()

    async with database.write() as session:
        await first.lease.confirm(session)
        await until(ask)
        with pytest.raises(DBAPIError):
            await session.execute(select(1))
        await session.rollback()
    assert (await read_row(database)).holder == "second"
    with pytest.raises(LeaseLostError):
        async with database.write() as session:
            await first.lease.confirm(session)


async def test_messages_that_a_dispatcher_left_unsent_are_sent_by_the_next_one(
    world: World, database: Database, first: OneDispatcher, second: OneDispatcher
) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job()
    assert await first.tick() == 1
    first.sent.clear()  # as if the process had been stopped before it sent the message
    await hand_over(first, second)
    assert await second.tick() == 0
    assert second.sent == [job.id]
    assert await second.tick() == 0
    assert second.sent == [job.id]
