"""Prepared statements: parameters of all types, and what a row must have."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import Table, bindparam, insert, literal, select
from sqlalchemy.exc import DBAPIError

from app.db.clock import Timestamp
from app.db.engine import Database
from app.db.models.pools import PoolRow
from app.db.prepared import Read, Write, fetch_all, prepare, write
from tests.support.server_fixture import World

pytestmark = pytest.mark.both_databases(
    "Parameters are written as the driver of each database takes them.",
    of=("app.db.prepared",),
)
_MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
_POOLS: Table = PoolRow.__table__  # type: ignore[assignment]


async def test_times_are_parameters_and_constants(database: Database) -> None:
    given = bindparam("moment", type_=Timestamp(), required=False)
    listed = literal(_MOMENT, Timestamp()).in_([_MOMENT, _MOMENT + timedelta(days=1)])
    query = select(given.label("moment"), listed.label("is_listed"))
    async with database.read() as session:
        for moment in (_MOMENT, None):
            ((row,),) = await fetch_all(session, [Read(query, {"moment": moment})])
            assert row.moment == moment
            assert row.is_listed


async def test_a_row_without_a_value_is_refused(world: World, database: Database) -> None:
    """Its place would be filled with a mark of SQLAlchemy, which is a number."""
    whole = {"id": "pool_a", "name": "a"}
    with pytest.raises((KeyError, DBAPIError, psycopg.Error)):
        async with database.write() as session:
            await write(session, [Write(insert(_POOLS), [whole, {"id": "pool_b"}])])
    async with database.read() as session:
        names = await session.scalars(select(PoolRow.name))
        assert "a" not in set(names)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_what_a_statement_requires_is_no_constant(dialect: str) -> None:
    statement = prepare(insert(_POOLS), dialect, ("id", "name", "created_at"))
    assert not {"id", "name", "created_at"} & statement.constants.keys()
    assert "created_at" in statement.converters
