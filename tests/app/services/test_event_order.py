"""The event log: IDs increase in the order in which events become visible.

A reader that tails the log by the last ID therefore misses no event.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from sqlalchemy import func, select
from sqlalchemy.event import listen as listens
from sqlalchemy.orm import Session as SyncSession
from sqlalchemy.util import await_only

from app.db.engine import EVENTS, Database, Session
from app.db.repositories import events as rows
from app.services.events import event_log
from tests.support.locks import until_locked_out
from tests.support.server_fixture import World
from tests.support.waiting import until

pytestmark = pytest.mark.both_databases(
    "A lock orders commits of events on PostgreSQL, where transactions write concurrently.",
    of=(
        "app.db.engine",
        "app.db.repositories.pending_rows",
    ),
)


overlapping = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
"""SQLite has one writer, so its transactions never overlap."""


async def _tail_log(database: Database, stop: asyncio.Event, seen: list[str]) -> None:
    """Reads the log like the hub, until `stop` is set and no further event arrives."""
    cursor = 0
    while True:
        stopping = stop.is_set()
        async with database.read() as session:
            found = await rows.list_after(session, cursor, limit=3)
        seen += [event.data["name"] for event in found]
        cursor = found[-1].id if found else cursor
        if stopping and not found:
            return
        await asyncio.sleep(0)


def _delay_commit(
    session: Session, drawn: asyncio.Event, wait_for_other: Callable[[], Awaitable[None]]
) -> None:
    """Delays a commit between drawing its event IDs and making them visible.

    This is where the order could be violated.
    """

    def wait(inside: SyncSession) -> None:
        inside.execute(select(1))  # The events are inserted before it, in the same round trip.
        drawn.set()
        await_only(wait_for_other())

    listens(session.sync_session, "before_commit", wait)


async def _until_locked_out_or_seen(
    database: Database, other: asyncio.Task[None], seen: list[str], name: str
) -> None:
    """Waits until the other transaction waits for this one, or until its event was read."""
    await until_locked_out(database, other)
    if other.done():
        await until(lambda: name in seen)


@overlapping
async def test_two_delayed_concurrent_commits_lose_no_event(
    world: World, database: Database
) -> None:
    """The commit of the first transaction is delayed after its event ID was drawn.

    The second transaction begins meanwhile; without a lock it would commit first.
    """
    seen: list[str] = []
    drawn, stop = asyncio.Event(), asyncio.Event()

    async def commit_quickly() -> None:
        await drawn.wait()
        async with database.write() as session:
            event_log.record(session, "job", {"name": "fast"}, project_id=world.project_id)

    fast = asyncio.create_task(commit_quickly())
    wait_for_fast = partial(_until_locked_out_or_seen, database, fast, seen, "fast")
    tail = asyncio.create_task(_tail_log(database, stop, seen))
    async with database.write() as session:
        event_log.record(session, "job", {"name": "slow"}, project_id=world.project_id)
        _delay_commit(session, drawn, wait_for_fast)
    await fast
    stop.set()
    await tail
    assert seen == ["slow", "fast"]


@overlapping
async def test_a_transaction_that_began_first_and_records_last_loses_no_event(
    world: World, database: Database
) -> None:
    """The older transaction has the lower transaction ID and the higher event ID.

    An order by transaction ID alone would be wrong in this case.
    """
    seen: list[str] = []
    began, drawn, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def record_last() -> None:
        async with database.write() as session:
            await session.execute(select(func.pg_current_xact_id()))
            began.set()
            await drawn.wait()
            event_log.record(session, "job", {"name": "older"}, project_id=world.project_id)

    older = asyncio.create_task(record_last())
    wait_for_older = partial(_until_locked_out_or_seen, database, older, seen, "older")
    tail = asyncio.create_task(_tail_log(database, stop, seen))
    await began.wait()
    async with database.write() as session:
        event_log.record(session, "job", {"name": "younger"}, project_id=world.project_id)
        _delay_commit(session, drawn, wait_for_older)
    await older
    stop.set()
    await tail
    assert seen == ["younger", "older"]


@pytest.mark.parametrize("seed", range(3))
async def test_a_reader_sees_every_event_of_many_delayed_writers_once(
    world: World, database: Database, seed: int
) -> None:
    chooser = random.Random(seed)
    names = [f"{writer}/{i}" for writer in range(12) for i in range(6)]

    async def write(writer: int) -> None:
        for i in range(6):
            async with database.write() as session:
                await let_others_go_first()
                event_log.record(
                    session, "job", {"name": f"{writer}/{i}"}, project_id=world.project_id
                )
                await let_others_go_first()

    async def let_others_go_first() -> None:
        for _ in range(chooser.randrange(20)):
            await asyncio.sleep(0)

    stop, seen = asyncio.Event(), list[str]()
    tail = asyncio.create_task(_tail_log(database, stop, seen))
    await asyncio.gather(*(write(writer) for writer in range(12)))
    stop.set()
    await tail
    assert sorted(seen) == sorted(names)
    for writer in range(12):
        assert [name for name in seen if name.startswith(f"{writer}/")] == [
            f"{writer}/{i}" for i in range(6)
        ]


async def test_a_reader_in_a_long_transaction_sees_a_prefix(
    world: World, database: Database
) -> None:
    """A database snapshot contains exactly the events up to its newest ID."""

    async def record(name: str) -> None:
        async with database.write() as session:
            event_log.record(session, "job", {"name": name}, project_id=world.project_id)

    await asyncio.gather(*(record(str(i)) for i in range(10)))
    async with database.read() as session:
        newest = await rows.read_newest_id(session)
        found = await rows.list_between(
            session, 0, newest, rows.EventFilter(project_ids=[world.project_id]), limit=100
        )
    assert [event.id for event in found] == list(range(found[0].id, newest + 1))


async def test_a_rolled_back_transaction_leaves_no_event(world: World, database: Database) -> None:
    async def fail() -> None:
        async with database.write() as session:
            event_log.record(session, "job", {"name": "lost"}, project_id=world.project_id)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    async with database.read() as session:
        assert await rows.read_newest_id(session) == 0


async def test_a_rolled_back_savepoint_leaves_no_event(world: World, database: Database) -> None:
    async with database.write() as session:
        event_log.record(session, "job", {"name": "before"}, project_id=world.project_id)
        async with session.begin_nested() as inner:
            event_log.record(session, "job", {"name": "inside"}, project_id=world.project_id)
            await inner.rollback()
        async with session.begin_nested():
            event_log.record(session, "job", {"name": "kept"}, project_id=world.project_id)
    async with database.read() as session:
        assert [event.data["name"] for event in await rows.list_after(session, 0, limit=10)] == [
            "before",
            "kept",
        ]


async def test_listeners_are_notified_only_after_the_commit(
    world: World, database: Database
) -> None:
    heard: list[frozenset[str]] = []
    listener: Callable[[frozenset[str]], None] = heard.append
    database.listeners.append(listener)
    async with database.write() as session:
        event_log.record(session, "job", {"name": "a"}, project_id=world.project_id)
        await session.flush()
        assert heard == []
    assert heard == [frozenset({EVENTS})]
