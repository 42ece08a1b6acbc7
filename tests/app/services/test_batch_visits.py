"""How often the transaction of a batch asks the database: threads' calls and round trips."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError, StatementError

from app.db import prepared
from app.db.drivers.postgresql import PipelinedConnection
from app.db.drivers.sqlite import SingleCallConnection
from app.db.engine import Database
from app.db.models.curves import TailRow
from app.db.models.events import EventRow
from app.db.prepared import Write
from app.db.repositories import telemetry
from app.services.events import event_log
from tests.app.services.telemetry_training import Training
from tests.support import records
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.both_databases(
    "Statements go together to a thread on SQLite, and in a pipeline on PostgreSQL.",
    of=(
        "app.db.engine",
        "app.db.drivers.postgresql",
        "app.db.prepared",
    ),
)


VISITS = 2
"""One that begins, locks and reads; one that writes and commits."""
_NAMES = [f"loss/{number}" for number in range(20)]


@contextmanager
def count_visits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Collects a mark for each call of SQLite's thread and each answer awaited of PostgreSQL."""
    made: list[object] = []
    call, commit = SingleCallConnection.call_in_thread, psycopg.AsyncConnection.commit
    fetch, execute = psycopg.AsyncPipeline._fetch_gen, psycopg.AsyncCursor.execute

    async def note_call(self: SingleCallConnection, function: Callable[[Any], Any]) -> Any:
        made.append(function)
        return await call(self, function)

    def note_fetch(self: Any, *, flush: bool) -> Any:
        if self.result_queue:
            made.append("pipeline")
        yield from fetch(self, flush=flush)

    async def note_execute(self: Any, *args: Any, **options: Any) -> Any:
        if self.connection._pipeline is None:
            made.append(args[0])
        return await execute(self, *args, **options)

    async def note_commit(self: Any) -> None:
        made.append("commit")
        await commit(self)

    with monkeypatch.context() as patch:
        patch.setattr(SingleCallConnection, "call_in_thread", note_call)
        patch.setattr(psycopg.AsyncPipeline, "_fetch_gen", note_fetch)
        patch.setattr(psycopg.AsyncCursor, "execute", note_execute)
        patch.setattr(psycopg.AsyncConnection, "commit", note_commit)
        yield made


async def send(training: Training, first_seq: int) -> None:
    """Sends a batch with a point of each series."""
    content = [records.make_points(training.run_id, name, [first_seq]) for name in _NAMES]
    assert await training.send(first_seq, content) == first_seq + len(_NAMES) - 1


async def test_a_batch_asks_the_database_twice_at_most(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(training, 1)  # adds the series, which the process knows from then on
    with count_visits(monkeypatch) as made:
        await send(training, 21)
        # An answer that is there before it is awaited is not counted.
        assert len(made) <= VISITS, made
        made.clear()
        assert await training.read_values("loss/19") == [1.0, 21.0]
        assert made, "a query outside of a pipeline is always counted"


async def _defer_clashing(session: Any, run_id: str = "run_without_row") -> None:
    row = {"run_id": run_id, "attempt_id": "att_without_row", "fence": 1}
    row |= {"first_seq": 1, "last_seq": 1, "points": 1, "content": b""}
    await prepared.write(session, [Write(telemetry.ADD_TAILS, [row])])


@pytest.mark.parametrize(
    ("run_id", "errors"),
    [
        ("run_without_row", IntegrityError),
        # No driver can encode it.
        ("\ud800", (ValueError, StatementError)),
    ],
)
async def test_a_commit_that_fails_leaves_no_transaction_open(
    database: Database, run_id: str, errors: Any
) -> None:
    async def fail() -> None:
        async with database.write() as session:
            event_log.record(session, "pool", {}, project_id=None)
            await _defer_clashing(session, run_id)

    for _ in range(3):
        with pytest.raises(errors):
            await fail()
    async with asyncio.timeout(PATIENCE_SECONDS), database.write() as session:
        event_log.record(session, "pool", {}, project_id=None)
    async with database.read() as session:
        assert await session.scalar(select(func.count()).select_from(EventRow)) == 1
        assert await session.scalar(select(func.count()).select_from(TailRow)) == 0


async def test_deferred_statements_are_executed_before_the_next_one(database: Database) -> None:
    async def fail() -> None:
        async with database.write() as session:
            await _defer_clashing(session)
            await session.execute(text("SELECT 1"))
            raise AssertionError("the statement before failed")

    with pytest.raises(IntegrityError):
        await fail()


async def test_a_rollback_drops_deferred_statements(database: Database) -> None:
    async def fail() -> None:
        async with database.write() as session:
            await _defer_clashing(session)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with database.write() as session:
        await session.execute(text("SELECT 1"))


async def test_a_reading_session_on_postgresql_reads_one_snapshot_and_writes_nothing(
    database: Database,
) -> None:
    if database.engine.dialect.name == "sqlite":
        pytest.skip("of PostgreSQL")
    async with database.read() as session:
        connection = await session.connection()
        driver = (await connection.get_raw_connection()).driver_connection
        assert isinstance(driver, PipelinedConnection)
        for name, value in (
            ("transaction_isolation", "repeatable read"),
            ("transaction_read_only", "on"),
        ):
            assert await session.scalar(text(f"SHOW {name}")) == value
