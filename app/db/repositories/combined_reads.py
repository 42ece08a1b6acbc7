"""Executes several statements that read, on SQLite in one call of the connection's thread.

A call costs more than most statements: what a list shows of its runs needs six of them.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from app.db.engine import Session

_DIALECT: Final = sqlite.dialect(paramstyle="qmark")
_Processor = Callable[[Any], Any]


class Read(NamedTuple):
    """A select that is built once, whose columns have names, and its parameters."""

    statement: Any
    values: Mapping[str, Any]


class _Prepared(NamedTuple):
    """The SQL of a select, and how its rows are read."""

    sql: str
    names: Sequence[str]
    constants: Mapping[str, Any]
    row: Callable[..., Any]
    processors: Sequence[tuple[int, _Processor]]
    """Places of the columns whose values are converted."""


async def fetch_all(session: Session, reads: Sequence[Read]) -> list[Sequence[Any]]:
    """Returns the rows of each statement, with attributes named as its columns."""
    connection = await session.connection()
    if connection.dialect.name != "sqlite":
        return [(await connection.execute(one.statement, dict(one.values))).all() for one in reads]
    prepared = [_prepare(one.statement) for one in reads]
    parameters = [
        [{**found.constants, **one.values}[name] for name in found.names]
        for one, found in zip(reads, prepared, strict=True)
    ]

    def run(driver: sqlite3.Connection) -> list[list[Any]]:
        found = []
        for one, values in zip(prepared, parameters, strict=True):
            try:
                found.append(driver.execute(one.sql, values).fetchall())
            except sqlite3.Error as error:
                raise DBAPIError.instance(one.sql, None, error, sqlite3.Error) from error
        return found

    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    answers = await driver.call_in_thread(run)
    return [_read_rows(one, rows) for one, rows in zip(prepared, answers, strict=True)]


@lru_cache(64)
def _prepare(statement: Any) -> _Prepared:
    compiled = statement.compile(dialect=_DIALECT)
    columns = list(statement.selected_columns)
    found = [column.type.dialect_impl(_DIALECT) for column in columns]
    processors = [one.result_processor(_DIALECT, None) for one in found]
    names = [column.key for column in columns]
    row = namedtuple("row", names)  # type: ignore[misc]  # noqa: PYI024
    return _Prepared(
        str(compiled),
        compiled.positiontup or (),
        compiled.params,
        row._make,
        [(place, one) for place, one in enumerate(processors) if one is not None],
    )


def _read_rows(prepared: _Prepared, rows: Sequence[Sequence[Any]]) -> list[Any]:
    if not prepared.processors:
        return [prepared.row(row) for row in rows]
    found = []
    for row in rows:
        values = list(row)
        for place, convert in prepared.processors:
            values[place] = convert(values[place])
        found.append(prepared.row(values))
    return found
