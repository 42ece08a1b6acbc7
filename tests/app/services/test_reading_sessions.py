"""Sessions that read: one snapshot of the database, and no writes."""

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError

from app.db.engine import Database
from app.db.models import UserRow
from tests.support.server_fixture import World

pytestmark = pytest.mark.both_databases(
    "A reading session is a transaction of another kind on each database.", of=("app.db.engine",)
)


on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


async def test_a_reading_session_sees_one_snapshot(world: World, database: Database) -> None:
    name = select(UserRow.display_name).order_by(UserRow.id)
    async with database.read() as reading:
        before = (await reading.scalars(name)).all()
        async with database.write() as session:
            await session.execute(update(UserRow).values(display_name="Renamed"))
        assert (await reading.scalars(name)).all() == before
    async with database.read() as reading:
        assert set((await reading.scalars(name)).all()) == {"Renamed"}


@on_postgresql
async def test_postgresql_refuses_writes_of_a_reading_session(
    world: World, database: Database
) -> None:
    async with database.read() as reading:
        with pytest.raises(DBAPIError, match="read-only"):
            await reading.execute(update(UserRow).values(display_name="Renamed"))
