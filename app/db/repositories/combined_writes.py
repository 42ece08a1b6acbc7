"""Executes several statements that write, on SQLite in one call of the connection's thread.

A call costs more than most statements: a group of batches needs five statements.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from app.db.engine import Session

_DIALECT: Final = sqlite.dialect(paramstyle="qmark")


class Write(NamedTuple):
    """A statement with parameters of one or more executions.

    The statement is one that is built once. Its parameters are integers, texts and bytes, which the
    driver takes as they are.
    """

    statement: Any
    rows: Sequence[Mapping[str, Any]]


async def execute(session: Session, writes: Sequence[Write]) -> None:
    """Executes the statements in order; those without rows are left out."""
    connection = await session.connection()
    given = [write for write in writes if write.rows]
    if connection.dialect.name != "sqlite":
        for write in given:
            await connection.execute(write.statement, list(write.rows))
        return
    prepared = [_prepare(write) for write in given]

    def run(driver: sqlite3.Connection) -> None:
        for sql, parameters in prepared:
            try:
                driver.executemany(sql, parameters)
            except sqlite3.Error as error:
                raise DBAPIError.instance(sql, None, error, sqlite3.Error) from error

    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    await driver.call_in_thread(run)


def _prepare(write: Write) -> tuple[str, list[list[Any]]]:
    compiled = _compile(write.statement, tuple(write.rows[0]))
    constants = compiled.construct_params(write.rows[0])  # of defaults, such as the time
    names = compiled.positiontup
    return str(compiled), [[{**constants, **row}[name] for name in names] for row in write.rows]


@lru_cache(64)
def _compile(statement: Any, columns: tuple[str, ...]) -> Any:
    return statement.compile(dialect=_DIALECT, column_keys=list(columns))
