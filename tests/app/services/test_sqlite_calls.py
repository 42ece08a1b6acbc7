"""Calls of SQLite's thread: how many a transaction takes, and what becomes of deferred ones."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from app.db import prepared
from app.db.drivers.sqlite import SingleCallConnection, connect
from app.db.engine import Database
from app.db.models.curves import TailRow
from app.db.models.events import EventRow
from app.db.prepared import Write
from app.db.repositories import telemetry
from app.services.access import principals, tokens
from app.services.events import event_log
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope
from tests.support.locks import until_locked_out
from tests.support.server_fixture import make_world
from tests.support.waiting import PATIENCE_SECONDS, until

_CLASHING = {
    "run_id": "run_without_row",
    "attempt_id": "att_without_row",
    "fence": 1,
    "first_seq": 1,
    "last_seq": 1,
    "points": 1,
    "content": b"",
}


@pytest.fixture
def url(sqlite_file: Path) -> str:
    return f"sqlite:///{sqlite_file}"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made: list[object] = []
    call = SingleCallConnection.call_in_thread

    async def count(self: SingleCallConnection, function: Callable[[Any], Any]) -> Any:
        made.append(function)
        return await call(self, function)

    monkeypatch.setattr(SingleCallConnection, "call_in_thread", count)
    return made


async def _defer_tail(session: Any) -> None:
    connection = await session.connection()
    await connection.run_sync(prepared.write_on, [Write(telemetry.ADD_TAILS, [_CLASHING])])


def test_a_reading_transaction_takes_a_call_for_its_statement_and_one_for_its_end(
    url: str, calls: list[object]
) -> None:
    async def read() -> None:
        database = Database(url, pool_size=1)
        async with database.read() as session:
            await session.scalar(select(func.count()).select_from(TailRow))
        calls.clear()
        async with database.read() as session:
            await session.scalar(select(func.count()).select_from(TailRow))
        await database.dispose()

    asyncio.run(read())
    assert len(calls) == 2


def test_an_event_goes_with_its_commit(url: str, calls: list[object]) -> None:
    async def write() -> int:
        database = Database(url, pool_size=1)
        async with database.write() as session:  # opens the connection
            await session.execute(text("SELECT 1"))
        calls.clear()
        async with database.write() as session:
            event_log.record(session, "pool", {}, project_id=None)
        made = len(calls)
        async with database.read() as session:
            assert await session.scalar(select(func.count()).select_from(EventRow)) == 1
        await database.dispose()
        return made

    assert asyncio.run(write()) == 1


def test_a_session_that_waits_to_write_holds_no_connection_of_those_that_read(url: str) -> None:
    """Regression: those that waited for the lock let `/readyz` and lists wait."""

    async def read_meanwhile() -> None:
        database = Database(url, pool_size=1)

        async def write() -> None:
            async with database.write() as session:
                await session.execute(text("SELECT 1"))

        async with database.write() as session:
            await session.execute(text("SELECT 1"))
            waiting = [asyncio.create_task(write()) for _ in range(3)]
            await until_locked_out(database, waiting[0])
            async with database.read() as reading:
                assert await reading.scalar(text("SELECT 1")) == 1
            assert not any(task.done() for task in waiting)
        await asyncio.gather(*waiting)
        await database.dispose()

    asyncio.run(read_meanwhile())


def test_reserved_sessions_write_in_turn_with_the_others(url: str) -> None:
    """Regression: telemetry and leases waited until no request wrote any more, or failed."""
    names: list[str] = []

    async def write(database: Database, name: str) -> None:
        async with database.write() as session:
            await session.execute(text("SELECT 1"))
            names.append(name)

    async def write_together() -> None:
        database = Database(url)
        reserved = database.reserve(1)
        order = [(database, "request"), (reserved, "telemetry"), (database, "another request")]
        async with database.write() as session:
            await session.execute(text("SELECT 1"))
            writers = [asyncio.create_task(write(*each)) for each in order]
            await until_locked_out(database, writers[0])
        await asyncio.gather(*writers)
        await reserved.dispose()
        await database.dispose()

    asyncio.run(write_together())
    assert names == ["request", "telemetry", "another request"]


def test_the_time_of_an_event_is_read_once_no_other_transaction_writes(url: str) -> None:
    async def write() -> tuple[datetime, datetime]:
        database = Database(url)

        async def record() -> None:
            async with database.write() as session:
                event_log.record(session, "pool", {}, project_id=None)

        async with database.write() as session:
            await session.execute(text("SELECT 1"))
            recording = asyncio.create_task(record())
            await until_locked_out(database, recording)
            begun = datetime.now(UTC)
            # The clock of SQLite counts milliseconds.
            await until(lambda: datetime.now(UTC) > begun + timedelta(milliseconds=20))
            released = datetime.now(UTC) - timedelta(milliseconds=1)
        await recording
        async with database.read() as session:
            at = await session.scalar(select(EventRow.at))
        await database.dispose()
        assert at is not None
        return released, at

    released, at = asyncio.run(write())
    assert at >= released


def test_the_commit_raises_the_error_of_a_deferred_statement_and_nothing_is_stored(
    url: str,
) -> None:
    async def write() -> int | None:
        database = Database(url)

        async def fail() -> None:
            async with database.write() as session:
                event_log.record(session, "pool", {}, project_id=None)
                await _defer_tail(session)

        with pytest.raises(IntegrityError):
            await fail()
        async with database.read() as session:
            events = await session.scalar(select(func.count()).select_from(EventRow))
        async with database.write() as session:  # the lock was given back
            event_log.record(session, "pool", {}, project_id=None)
        await database.dispose()
        return events

    assert asyncio.run(write()) == 0


def test_a_trial_executes_deferred_statements(url: str) -> None:
    async def attempt() -> None:
        database = Database(url)

        async def fail() -> None:
            async with database.trial() as session:
                await _defer_tail(session)

        with pytest.raises(IntegrityError):
            await fail()
        await database.dispose()

    asyncio.run(attempt())


def test_a_rollback_drops_deferred_statements(url: str) -> None:
    async def write() -> None:
        database = Database(url, pool_size=1)

        async def fail() -> None:
            async with database.write() as session:
                await _defer_tail(session)
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        async with database.write() as session:
            await session.execute(text("SELECT 1"))
        await database.dispose()

    asyncio.run(write())


def test_a_cancelled_task_leaves_no_transaction_open(url: str) -> None:
    async def cancel() -> None:
        database = Database(url, pool_size=2)

        async def write() -> None:
            async with database.write() as session:
                await session.execute(text("SELECT 1"))
                await asyncio.Event().wait()

        for turns in range(12):
            task = asyncio.create_task(write())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        async with asyncio.timeout(PATIENCE_SECONDS), database.write() as session:
            await session.execute(text("SELECT 1"))
        await database.dispose()

    asyncio.run(cancel())


async def test_a_lookup_takes_no_call_unless_the_file_is_locked(
    url: str, calls: list[object]
) -> None:
    database = Database(url)
    try:
        world = await make_world(database)
        async with database.write() as session:
            request = TokenRequest(name="t", scopes=(Scope.READ,))
            made = await tokens.issue_token(session, None, world.admin.user_id, request)
        secret, direct = made.secret or "", database.open_direct()
        assert direct is not None
        calls.clear()
        assert await principals.find_by_token(database, secret) is not None
        assert not calls
        direct.set_progress_handler(lambda: 1, 1)
        with pytest.raises(sqlite3.OperationalError):
            direct.execute("SELECT * FROM users").fetchall()
        assert await principals.find_by_token(database, secret) is not None
        assert calls
        direct.set_progress_handler(None, 0)
        # Another connection commits: the next statement sees it.
        async with database.write() as session:
            await tokens.revoke_token(session, world.admin, made.id)
        calls.clear()
        assert await principals.find_by_token(database, secret) is None
        assert not calls
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            direct.execute("DELETE FROM tokens")
    finally:
        await database.dispose()


async def test_a_file_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    """Regression: it called the event loop when that was closed already."""
    before = threading.active_count()
    with pytest.raises(sqlite3.OperationalError):
        await connect(str(tmp_path / "missing" / "palestra.db"), 1.0, set())
    assert threading.active_count() == before


async def test_closing_a_database_waits_for_the_statement_of_a_cancelled_task(url: str) -> None:
    """Regression: its thread ended after the event loop was closed, and called it."""
    before = list_connection_threads()
    database = Database(url)
    is_running = threading.Event()
    may_end = threading.Event()

    def wait(_connection: sqlite3.Connection) -> None:
        is_running.set()
        may_end.wait(PATIENCE_SECONDS)

    async def read() -> None:
        async with database.read() as session:
            connection = await (await session.connection()).get_raw_connection()
            driver: Any = connection.driver_connection
            await driver.call_in_thread(wait)

    task = asyncio.create_task(read())
    await until(is_running.is_set, "the statement runs")
    # The first cancellation rolls back, which waits for the thread; further ones may end the task.
    for _ in range(10):
        task.cancel()
        await asyncio.sleep(0)
    closing = asyncio.create_task(database.dispose())
    asyncio.get_running_loop().call_soon(may_end.set)
    await asyncio.gather(task, return_exceptions=True)
    await closing
    assert list_connection_threads() <= before


def list_connection_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "_connection_worker" in thread.name}
