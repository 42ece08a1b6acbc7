"""An SQLite file becomes smaller after rows were deleted, bit by bit or by a command."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from app.daemons import space_returner
from app.daemons.space_returner import SpaceReturner
from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.repositories import free_pages
from app.db.startup_check import DatabaseStartError
from app.db.vacuum import vacuum

ROWS, BYTES = 500, 8_000


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps 200 pages, so that a small file shows what happens."""
    for name, value in (("KEPT", 200), ("BEGIN_AT", 600), ("STEP", 100), ("PAUSE", 0.0)):
        monkeypatch.setattr(space_returner, name, value)


async def write_and_delete(database: Database) -> None:
    """Adds 4 MB of rows and deletes all but the last one."""
    row = {"content": b"x" * BYTES}
    async with database.write() as session:
        await session.execute(text("CREATE TABLE rows_of_test (id INTEGER, content BLOB)"))
        statement = text("INSERT INTO rows_of_test VALUES (:id, :content)")
        await session.execute(statement, [{"id": n, **row} for n in range(ROWS)])
    async with database.write() as session:
        await session.execute(text(f"DELETE FROM rows_of_test WHERE id < {ROWS - 1}"))


async def count_rows(database: Database) -> int:
    async with database.read() as session:
        return await session.scalar(text("SELECT COUNT(*) FROM rows_of_test")) or 0


def measure(path: Path) -> int:
    """Returns the bytes of a database file once its write-ahead log is merged."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


@pytest.fixture
async def file(sqlite_file: Path) -> AsyncIterator[Database]:
    """A database file of this version."""
    made = Database(f"sqlite:///{sqlite_file}")
    yield made
    await made.dispose()


async def test_a_database_with_few_free_pages_keeps_them(database: Database) -> None:
    assert await SpaceReturner(database).tick() == 0


@pytest.mark.usefixtures("few")
async def test_free_pages_are_given_back_in_small_steps(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = file
    await write_and_delete(database)
    path = Path(make_url(str(database.engine.url)).database or "")
    before, asked, give_back = measure(path), [], free_pages.give_back

    async def give_back_and_note(session: object, most: int) -> None:
        asked.append(most)
        await give_back(session, most)  # type: ignore[arg-type]

    monkeypatch.setattr(free_pages, "give_back", give_back_and_note)
    pages = await SpaceReturner(database).tick()
    async with database.read() as session:
        found = await free_pages.count(session)
    assert found is not None
    assert 150 <= found.free <= 250
    assert max(asked) <= 100
    assert before - measure(path) == pytest.approx(pages * found.size, abs=64 * found.size)
    assert pages * found.size > 0.7 * ROWS * BYTES
    assert await count_rows(database) == 1
    assert await SpaceReturner(database).tick() == 0


@pytest.mark.usefixtures("few")
async def test_writers_are_served_meanwhile(file: Database) -> None:
    database = file
    await write_and_delete(database)

    async def write() -> None:
        for number in range(50):
            async with database.write() as session:
                await session.execute(
                    text("INSERT INTO rows_of_test VALUES (:id, NULL)"), {"id": number}
                )

    await asyncio.gather(SpaceReturner(database).tick(), write())
    assert await count_rows(database) == 51


@pytest.mark.usefixtures("few")
async def test_a_file_that_keeps_its_free_pages_is_rewritten_once(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    url = f"sqlite:///{path}"
    await asyncio.to_thread(upgrade, url)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("journal_mode=DELETE", "auto_vacuum=NONE"):
        connection.execute(f"PRAGMA {statement}")
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    database = Database(url)
    await write_and_delete(database)
    assert await SpaceReturner(database).tick() == 0
    with pytest.raises(DatabaseStartError, match="stop the server"):
        await asyncio.to_thread(vacuum, url)
    await database.dispose()
    done = await asyncio.to_thread(vacuum, url)
    assert done.before - done.after > 0.9 * ROWS * BYTES
    assert done.after == path.stat().st_size
    database = Database(url)
    assert await count_rows(database) == 1
    async with database.read() as session:
        assert await free_pages.count(session) is not None
    await database.dispose()
