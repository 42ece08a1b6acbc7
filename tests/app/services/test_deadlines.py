"""Statements that read have a deadline, at which the database ends them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.db import faults
from app.db.engine import Database
from tests.support.statements import ENDLESS

pytestmark = pytest.mark.both_databases(
    "Each database ends statements in its own way.",
    of=("app.db.engine", "app.db.faults"),
)

SECONDS = 0.05
MANY = (
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 500000) "
    "SELECT count(*) FROM numbers"
)
"""A statement of several looks at the deadline."""


@pytest_asyncio.fixture
async def hasty(database_url: str) -> AsyncIterator[Database]:
    """A database whose statements may take a twentieth of a second."""
    opened = Database(database_url, pool_size=1, statement_seconds=SECONDS)
    yield opened
    await opened.dispose()


async def is_ended(opened: Database, seconds: float | None = None) -> bool:
    with pytest.raises(OperationalError) as caught:
        async with opened.read(seconds) as session:
            await session.execute(text(ENDLESS))
    return faults.exceeded_deadline(caught.value) and faults.is_temporary(caught.value)


async def test_a_statement_over_its_deadline_is_ended_and_the_connection_goes_on(
    hasty: Database,
) -> None:
    for _ in range(2):
        assert await is_ended(hasty)
        async with hasty.read(3_600) as session:
            assert await session.scalar(text("SELECT 7")) == 7


async def test_a_single_statement_has_the_deadline(hasty: Database) -> None:
    with pytest.raises(OperationalError) as caught:
        async with hasty.open_without_transaction() as session:
            await session.execute(text(ENDLESS))
    assert faults.exceeded_deadline(caught.value)


async def test_a_session_may_have_another_deadline(hasty: Database) -> None:
    async with hasty.read(3_600) as session:
        assert await session.scalar(text(MANY)) == 500_000
    assert await is_ended(hasty), "the next one has the usual deadline"


async def test_a_session_that_writes_has_no_deadline(hasty: Database) -> None:
    async with hasty.write() as session:
        assert await session.scalar(text(MANY)) == 500_000
    assert await is_ended(hasty)


async def test_reserved_connections_are_free_while_the_others_are_used(
    database_url: str,
) -> None:
    usual = Database(database_url, pool_size=1)
    reserved = usual.reserve(1)
    async with usual.read() as session, reserved.read() as other:
        await session.execute(text("SELECT 1"))
        assert await other.scalar(text("SELECT 1")) == 1
    assert await is_ended(reserved, SECONDS)
    await reserved.dispose()
    await usual.dispose()
