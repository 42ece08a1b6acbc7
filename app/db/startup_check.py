"""Checks a database before the server uses it: reachable, writable, and of a known schema."""

from pathlib import Path
from typing import Final

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

import migrations
from app.db.engine import Database

_LAST_WITH_FORMER_STEPS: Final = "1b3b4e36718c"
"""Last commit with the migrations 0001 to 0043, which one migration replaces."""


class DatabaseStartError(Exception):
    """The database cannot be used; the message is one line without a password."""


async def check_database(url: str) -> None:
    """Connects once and checks the schema's version.

    Raises:
        DatabaseStartError: If the database cannot be used; the message states what to do.
    """
    try:
        database = Database(url, pool_size=1)
    except ArgumentError as error:
        raise DatabaseStartError(extract_first_line(error)) from None
    try:
        async with database.engine.connect() as connection:
            await _check_schema(connection)
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseStartError(_sentence(error, database)) from None
    finally:
        await database.dispose()


async def _check_schema(connection: AsyncConnection) -> None:
    version = await connection.run_sync(_version)
    if version is None:
        raise DatabaseStartError("the database has no tables yet: run `palestra db upgrade` first")
    refuse_unknown(version)
    if version != list_revisions()[-1]:
        raise DatabaseStartError(
            f"the database has the older schema {version}: run `palestra db upgrade` first"
        )


def refuse_unknown(version: str) -> None:
    """Refuses a schema that this code cannot upgrade.

    Raises:
        DatabaseStartError: If it is newer, or older than the first migration; the message states
            what to do.
    """
    known = list_revisions()
    if version > known[-1]:
        raise DatabaseStartError(
            f"the database has the newer schema {version}, this Palestra knows up to "
            f"{known[-1]}: upgrade Palestra"
        )
    if version not in known:
        raise DatabaseStartError(
            f"the database has the schema {version}, this Palestra upgrades from {known[0]} on: "
            f"run `palestra db upgrade` of commit {_LAST_WITH_FORMER_STEPS} first"
        )


def list_revisions() -> tuple[str, ...]:
    """Returns every known version of the schema, oldest first: the numbers of the migrations.

    Does not import Alembic, which costs a server's start 0.1 s and 10 MiB.
    """
    files = (Path(migrations.__file__).parent / "versions").glob("[0-9]*_*.py")
    return tuple(sorted(path.stem.partition("_")[0] for path in files))


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _sentence(error: Exception, database: Database) -> str:
    reason = extract_first_line(error)
    if "password authentication failed" in reason:
        return "the database refuses user name or password: check them in database_url"
    return f"the database {database.engine.url.database} cannot be used: {reason}"


def extract_first_line(error: Exception) -> str:
    """Returns the first line of an error's message, the driver's own message if there is one."""
    reason = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    lines = str(reason).strip().splitlines()
    return lines[0] if lines else type(reason).__name__
