"""Brings a database to the schema of this code, with the steps in `migrations/`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError

import migrations
from app.db.engine import build_async_url
from app.db.sqlite_statistics import write_statistics
from app.db.startup_check import DatabaseStartError, extract_first_line, refuse_unknown

_UPGRADE_LOCK: Final = 0x70616C_7570


ReportProgress = Callable[[str], None]
"""Is called with a sentence about a step that was applied."""


def upgrade(url: str, revision: str = "head", *, progress: ReportProgress | None = None) -> str:
    """Applies the missing steps in one transaction each; returns the schema's version.

    If two processes upgrade at the same time, one waits for the other.

    Args:
        url: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`.
        revision: Version to upgrade to.
        progress: Is told each step that was applied.

    Raises:
        DatabaseStartError: If the database's schema is newer, or too old, or the database cannot
            be reached or changed.
    """
    try:
        with _connection(url) as connection:
            return _upgrade(connection, revision, progress)
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseStartError(
            f"the database cannot be upgraded: {extract_first_line(error)}"
        ) from None


def _upgrade(connection: Connection, revision: str, progress: ReportProgress | None) -> str:
    found = read_version(connection)
    if found is not None:
        refuse_unknown(found)
    connection.commit()
    configuration = build_config()
    configuration.attributes["connection"] = connection
    configuration.attributes["progress"] = progress if found is not None else None
    command.upgrade(configuration, revision)
    if revision == "head":
        # Each time: a step that makes a table anew drops its statistics.
        write_statistics(connection)
    return read_version(connection) or ""


def read_version(connection: Connection) -> str | None:
    """Returns the version of a database's schema; `None` for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def read_required_version() -> str:
    """Returns the schema version that this code requires."""
    return ScriptDirectory.from_config(build_config()).get_current_head() or ""


def build_config() -> Config:
    """Returns Alembic's configuration; there is no ini file."""
    configuration = Config()
    configuration.set_main_option(
        "script_location", str(Path(migrations.__file__).parent).replace("%", "%%")
    )
    configuration.set_main_option("path_separator", "os")
    return configuration


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    engine = _sync_engine(url)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _UPGRADE_LOCK})
                connection.commit()
            yield connection
    finally:
        engine.dispose()


def _sync_engine(url: str) -> Engine:
    target = make_url(build_async_url(url))
    if target.get_backend_name() != "sqlite":
        return create_engine(target)
    engine = create_engine(target.set(drivername="sqlite"), connect_args={"timeout": 60})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _prepare(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions: a migration is applied completely or not at all.
    connection.isolation_level = None
    # Of a file without tables; others need `app.db.vacuum`. It lets the daemon return free pages.
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
