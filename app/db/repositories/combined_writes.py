"""Executes several statements that write, together with the next one or the commit.

A call of SQLite's thread, and a round trip to PostgreSQL, cost more than most statements: a group
of batches needs seven.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection
from sqlalchemy.exc import DBAPIError

from app.db.engine import Session
from app.db.repositories.built_statements import DIALECTS, write_changes


class Write(NamedTuple):
    """A statement that is built once, with the parameters of one or more executions."""

    statement: Any
    rows: Sequence[Mapping[str, Any]]


async def execute_in(session: Session, writes: Sequence[Write]) -> None:
    """Executes statements as `execute` does, in the connection of a session."""
    await write_changes(session)
    connection = await session.connection()
    await connection.run_sync(execute, writes)


def execute(connection: Connection, writes: Sequence[Write]) -> None:
    """Executes statements in order; those without rows are left out.

    They are executed with the next statement of the connection or with its commit, which raises
    their errors.
    """
    driver: Any = connection.connection.driver_connection
    name = connection.dialect.name
    prepared = [_prepare(write, name) for write in writes if write.rows]
    if name != "sqlite":
        for sql, rows in prepared:
            driver.defer(sql, rows)
        return

    def run(sqlite: sqlite3.Connection) -> None:
        for sql, rows in prepared:
            try:
                sqlite.executemany(sql, rows)
            except sqlite3.Error as error:
                raise DBAPIError.instance(sql, None, error, sqlite3.Error) from error

    if prepared:
        driver.defer(run)


class _Prepared(NamedTuple):
    """The SQL of a statement, and how its parameters are written."""

    sql: str
    names: Sequence[str]
    """The parameters in the order of their places; empty where they are named."""
    binds: Mapping[str, BindParameter[Any]]
    """Parameters that no row has, such as the clock's skew, which may change."""
    processors: Mapping[str, Callable[[Any], Any]]
    """Conversions of parameters."""


def _prepare(write: Write, dialect_name: str) -> tuple[str, Sequence[Any]]:
    """Returns the SQL of a statement, and its parameters as the driver takes them."""
    found = _compile(write.statement, tuple(write.rows[0]), dialect_name)
    constants = {name: bind.effective_value for name, bind in found.binds.items()}
    rows = [{**row, **constants} for row in write.rows]
    for row in rows:
        for name, convert in found.processors.items():
            row[name] = convert(row[name])
    if not found.names:
        return found.sql, rows
    return found.sql, [[row[name] for name in found.names] for row in rows]


@lru_cache(128)
def _compile(statement: Any, columns: tuple[str, ...], dialect_name: str) -> _Prepared:
    dialect = DIALECTS[dialect_name]
    compiled = statement.compile(dialect=dialect, column_keys=list(columns))
    processors = {
        name: convert
        for name, bind in compiled.binds.items()
        if (convert := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
    }
    return _Prepared(
        str(compiled),
        compiled.positiontup or (),
        {name: bind for name, bind in compiled.binds.items() if name not in columns},
        processors,
    )
