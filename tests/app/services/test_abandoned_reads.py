"""The statement of a client that has left ends, and never the one after it on its connection."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import bindparam, literal_column, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.types import BigInteger

from app.client_presence import READER, ClientPresence
from app.db import faults
from app.db.drivers.postgresql import PipelinedConnection
from app.db.engine import Database
from app.db.prepared import Plan, Read, Rows, carry_out, fetch_all
from tests.support.statements import ENDLESS
from tests.support.waiting import until

pytestmark = pytest.mark.both_databases(
    "Each driver ends a statement in its own way.",
    of=("app.db.drivers.postgresql", "app.db.prepared"),
)
ABORTS = 500
_COUNTING = (
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 40000) "
    "SELECT max(n) FROM numbers"
)
"""Takes some milliseconds."""
_COUNT = select(literal_column(f"({_COUNTING})", BigInteger()).label("n"))
_ECHO = select(bindparam("number", type_=BigInteger(), required=False).label("number"))


@pytest_asyncio.fixture
async def opened(database_url: str) -> AsyncIterator[Database]:
    """A database with one connection, so that a read meets what the read before it left."""
    database = Database(database_url, pool_size=1)
    yield database
    await database.dispose()


async def _leave_while_reading(
    database: Database, statement_seconds: float = 3_600
) -> asyncio.Task[None]:
    """Returns a task that reads without end for a client that has left."""
    started, client = asyncio.Event(), ClientPresence()

    async def read_without_end() -> None:
        READER.set(client)
        async with database.read(statement_seconds) as session:
            await session.execute(text("SELECT 1"))
            started.set()
            await session.execute(text(ENDLESS))

    reading = asyncio.create_task(read_without_end())
    await started.wait()
    client.leave()
    return reading


async def _check_that_the_read_ends(database: Database) -> None:
    """Asserts that the statement of a client that leaves ends, and that the connection goes on."""
    reading = await _leave_while_reading(database)
    with pytest.raises(OperationalError) as caught:
        await reading
    assert faults.exceeded_deadline(caught.value)
    async with database.read() as session:
        assert await session.scalar(text("SELECT 7")) == 7


async def test_the_read_of_a_client_that_left_ends_in_the_database(opened: Database) -> None:
    for _ in range(3):
        await _check_that_the_read_ends(opened)


async def test_an_end_that_is_requested_before_the_statement_begins_is_requested_again(
    opened: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL ignores such a request; SQLite asks while a statement runs."""
    cancel_safe = PipelinedConnection.cancel_safe
    requests: list[float] = []

    async def ignore_first(driver: PipelinedConnection, *, timeout: float) -> None:
        requests.append(timeout)
        if len(requests) > 1:
            await cancel_safe(driver, timeout=timeout)

    monkeypatch.setattr(PipelinedConnection, "cancel_safe", ignore_first)
    await _check_that_the_read_ends(opened)
    assert opened.dialect_name == "sqlite" or len(requests) > 1


async def test_requests_to_end_a_statement_end_with_its_connection(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ignore(_driver: PipelinedConnection, *, timeout: float) -> None:
        assert timeout > 0

    monkeypatch.setattr(PipelinedConnection, "cancel_safe", ignore)
    database = Database(database_url, pool_size=1)
    # PostgreSQL executes the statement of a closed connection until its deadline.
    reading = await _leave_while_reading(database, statement_seconds=5)
    reading.cancel()
    await asyncio.wait([reading])
    await database.dispose()
    await until(lambda: not any("_cancel_statements" in repr(task) for task in asyncio.all_tasks()))


async def test_a_read_that_begins_after_its_client_left_ends(opened: Database) -> None:
    client = ClientPresence()
    client.leave()

    async def read() -> None:
        READER.set(client)
        async with opened.read() as session:
            await session.execute(text(ENDLESS))

    with pytest.raises(OperationalError):
        await asyncio.create_task(read())


async def test_a_client_that_leaves_between_two_statements_ends_the_second(
    opened: Database,
) -> None:
    client = ClientPresence()

    async def read() -> None:
        READER.set(client)
        async with opened.read(3_600) as session:
            await session.execute(text("SELECT 1"))
            client.leave()
            await session.execute(text(ENDLESS))

    with pytest.raises(OperationalError):
        await asyncio.create_task(read())


async def test_a_plan_for_a_client_that_left_ends_no_statement_of_another(
    opened: Database,
) -> None:
    """Its transaction begins twice on one connection of PostgreSQL."""
    client = ClientPresence()
    client.leave()

    def plan() -> Plan[Rows]:
        return (yield [Read(_ECHO, {"number": 1})])[0]

    async def read() -> None:
        READER.set(client)
        with contextlib.suppress(OperationalError):
            async with opened.read() as session:
                await carry_out(session, plan())

    for _ in range(50):
        await asyncio.create_task(read())
        async with opened.write() as session:
            await session.execute(text(_COUNTING))


async def test_two_reads_of_a_client_end_together(database_url: str) -> None:
    database, client = Database(database_url, pool_size=2), ClientPresence()
    started = asyncio.Event()

    async def read_twice() -> None:
        READER.set(client)
        async with database.read(3_600) as outer:
            await outer.execute(text("SELECT 1"))
            async with database.read() as inner:
                await inner.execute(text("SELECT 1"))
            started.set()
            await outer.execute(text(ENDLESS))

    reading = asyncio.create_task(read_twice())
    await started.wait()
    client.leave()
    with pytest.raises(OperationalError):
        await reading
    await database.dispose()


async def test_no_read_ends_or_answers_the_one_after_it(opened: Database) -> None:
    """500 clients leave at random moments, among others that must get their own answers."""
    choose = random.Random(0)

    async def read(number: int, client: ClientPresence | None) -> bool:
        READER.set(client)
        reads = [Read(_ECHO, {"number": number}), Read(_COUNT, {}), Read(_ECHO, {"number": 0})]
        try:
            async with opened.read() as session:
                first = await session.scalar(select(bindparam("n", number, BigInteger())))
                rows, counted, none = await fetch_all(session, reads)
        except OperationalError as error:
            if client is None or not faults.exceeded_deadline(error):
                raise
            return False
        assert (first, rows[0].number, counted[0].n, none[0].number) == (number, number, 40_000, 0)
        return True

    ended = 0
    for number in range(1, ABORTS + 1):
        client = ClientPresence()
        tasks = [
            asyncio.create_task(read(number, client)),
            asyncio.create_task(read(-number, None)),
        ]
        await asyncio.wait(tasks, timeout=choose.random() * 0.008)
        client.leave()
        answered, other_answered = await asyncio.gather(*tasks)
        assert other_answered
        ended += not answered
    assert 0 < ended <= ABORTS


async def test_a_transaction_that_writes_goes_on(opened: Database) -> None:
    client = ClientPresence()
    started = asyncio.Event()

    async def write() -> None:
        READER.set(client)
        async with opened.write() as session:
            await session.execute(text("UPDATE alembic_version SET version_num = 'changed'"))
            started.set()
            await session.execute(text(_COUNTING))

    writing = asyncio.create_task(write())
    await started.wait()
    client.leave()
    await writing
    async with opened.read() as session:
        assert await session.scalar(text("SELECT version_num FROM alembic_version")) == "changed"
    async with opened.write() as session:
        await session.execute(text("UPDATE alembic_version SET version_num = '0043'"))
