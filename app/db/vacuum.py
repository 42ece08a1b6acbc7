"""Returns the free pages of an SQLite file to the file system, all at once.

A file of a server of this version has `auto_vacuum=INCREMENTAL`, and the daemon returns its pages
bit by bit. A file that was made without it, such as one restored from an SQL dump, keeps the pages
of deleted rows for later rows; rewriting it once changes that.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from app.db.engine import build_async_url
from app.db.startup_check import DatabaseStartError

_WAIT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """The bytes of a database file before and after."""

    before: int
    after: int


def vacuum(url: str) -> VacuumResult:
    """Rewrites an SQLite file without its free pages.

    It needs as much free disk as the file has content, and nothing else may use the file.

    Args:
        url: `sqlite:///FILE`.

    Raises:
        DatabaseStartError: If it is no SQLite file, or the file is in use or cannot be rewritten.
    """
    target = make_url(build_async_url(url))
    if target.get_backend_name() != "sqlite" or not target.database:
        raise DatabaseStartError(
            "PostgreSQL returns and reuses the space of deleted rows by itself (autovacuum)"
        )
    path = Path(target.database)
    if not path.is_file():
        raise DatabaseStartError(f"there is no database at {path}")
    before = path.stat().st_size
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        _check_unused(connection)
        # In a file with a write-ahead log the mode cannot be changed.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise DatabaseStartError(f"the database cannot be rewritten: {error}") from None
    finally:
        connection.close()
    return VacuumResult(before, path.stat().st_size)


def _check_unused(connection: sqlite3.Connection) -> None:
    """Refuses a file that a server has open: it would wait, or lose its write-ahead log."""
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    try:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError:
        raise DatabaseStartError(
            "the database is in use: stop the server and its daemons first"
        ) from None
