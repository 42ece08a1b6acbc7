"""Executes several statements that read, in one visit to the database where they allow it.

On SQLite a visit is a call of the connection's thread, which costs more than most statements. On
PostgreSQL it is a round trip: statements that do not need each other's rows travel together. Both
get the SQL of statements that are built and compiled once.

Statements of which some depend on the rows of others are a `Plan`, a generator: it yields
statements, is sent their rows, and returns what was read.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from sqlalchemy.exc import DBAPIError

from app.db.clock import Timestamp
from app.db.engine import BEGINNINGS, Database, Session
from app.db.postgres import PipelinedConnection
from app.db.repositories.built_statements import DIALECTS, fetch, write_changes

_DOUBLE: Final = 701
"""Type code of PostgreSQL for the only type of fractions that is read."""
_Processor = Callable[[Any], Any]
Rows = Sequence[Any]
Values = Mapping[str, Any]
_Result = TypeVar("_Result")


class Read(NamedTuple):
    """A select whose columns have names, and its parameters.

    The select is one that is built once, or one that was prepared. The parameters are in the form
    that the driver takes: numbers, texts, and lists on PostgreSQL. They may be a function of the
    rows of the reads before.
    """

    statement: Any
    values: Values | Callable[[Sequence[Rows]], Values]
    has_bytes: bool = False
    """Whether rows are mostly bytes: PostgreSQL sends those twice as fast in its binary form."""


class Prepared(NamedTuple):
    """The SQL of a select, and how its rows are read."""

    sql: str
    names: Sequence[str]
    """The parameters in the order of their places; empty where they are named."""
    constants: Values
    computed: Sequence[tuple[str, Callable[[], Any]]]
    """Parameters whose values are computed for each execution."""
    row: Callable[..., Any]
    processors: Sequence[tuple[int, _Processor]]
    """Places of the columns whose values are converted."""


Plan = Generator[Sequence[Read], list[Rows], _Result]
"""Statements that are executed together, step by step."""


async def fetch_all(session: Session, reads: Sequence[Read]) -> list[Rows]:
    """Returns the rows of each statement, with attributes named as its columns."""
    return await carry_out(session, _plan_one_step(reads))


def _plan_one_step(reads: Sequence[Read]) -> Plan[list[Rows]]:
    return (yield reads)


async def carry_out(session: Session, plan: Plan[_Result]) -> _Result:
    """Returns what a plan reads in the session's transaction.

    It takes one visit to SQLite, and one round trip to PostgreSQL for each step of the plan.
    """
    return await _carry_out(session, plan, begins=False)


async def carry_out_in_snapshot(session: Session, plan: Plan[_Result]) -> _Result:
    """Returns what a plan reads in a transaction of its own, so that its steps fit each other.

    The transaction takes no further visit, and on PostgreSQL a round trip for its end.

    Args:
        session: A session of `Database.glance`, which has begun no transaction.
        plan: The plan.
    """
    return await _carry_out(session, plan, begins=True)


async def _carry_out(session: Session, plan: Plan[_Result], *, begins: bool) -> _Result:
    await write_changes(session)
    connection = await session.connection()
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    if connection.dialect.name == "sqlite":
        found: _Result = await driver.call_in_thread(
            lambda sqlite: _carry_out_on_sqlite(sqlite, plan, begins=begins)
        )
        return found
    return await _carry_out_on_postgresql(driver, plan, begins=begins)


def _carry_out_on_sqlite(
    driver: sqlite3.Connection, plan: Plan[_Result], *, begins: bool
) -> _Result:
    try:
        if begins:
            driver.execute(BEGINNINGS["sqlite"][0])
        reads = next(plan)
        while True:
            reads = plan.send(_fetch(driver, reads))
    except StopIteration as end:
        found: _Result = end.value
        return found
    finally:
        if begins:
            driver.rollback()


def _fetch(driver: sqlite3.Connection, reads: Sequence[Read]) -> list[Rows]:
    found: list[Rows] = []
    for one in reads:
        prepared = _find_prepared(one.statement, "sqlite")
        values = {**_list_constants(prepared), **_list_values(one, found)}
        try:
            rows = driver.execute(prepared.sql, [values[name] for name in prepared.names])
            found.append(_read_rows(prepared, rows.fetchall()))
        except sqlite3.Error as error:
            raise DBAPIError.instance(prepared.sql, None, error, sqlite3.Error) from error
    return found


async def _carry_out_on_postgresql(
    driver: PipelinedConnection, plan: Plan[_Result], *, begins: bool
) -> _Result:
    try:
        if begins:
            driver.begin(BEGINNINGS["postgresql"][0], driver.statement_seconds)
        found = await _follow(driver, plan)
        if begins:
            await driver.commit()
    except psycopg.Error as error:
        if begins:
            await driver.rollback()
        raise DBAPIError.instance("", None, error, psycopg.Error) from error
    return found


async def _follow(driver: PipelinedConnection, plan: Plan[_Result]) -> _Result:
    try:
        reads = next(plan)
        while True:
            reads = plan.send(await _fetch_together(driver, reads))
    except StopIteration as end:
        found: _Result = end.value
        return found


async def look_up(source: Database | Session, read: Read) -> Rows:
    """Returns the rows of a statement that finds a few rows by keys.

    SQLite answers it on the calling thread if `source` is a database: that takes a fraction of the
    time of a call of another thread, as long as the pages are in memory.
    """
    try:
        direct = source.open_direct() if isinstance(source, Database) else None
        if direct is not None:
            return _fetch(direct, [read])[0]
    except (DBAPIError, sqlite3.Error):
        pass  # It may be locked for a moment; the other connections wait for that.
    if isinstance(source, Database):
        async with source.glance() as session:
            return await look_up(session, read)
    assert not callable(read.values)
    return await fetch(source, read.statement, **read.values)


async def _fetch_together(driver: PipelinedConnection, reads: Sequence[Read]) -> list[Rows]:
    found: list[Rows] = []
    waiting: list[tuple[Prepared, psycopg.AsyncCursor]] = []

    async def receive() -> None:
        for prepared, cursor in waiting:
            found.append(_read_rows(prepared, await cursor.fetchall()))
        waiting.clear()

    async with driver.pipeline():
        await driver.send_deferred()
        for one in reads:
            if callable(one.values):
                await receive()
            prepared = _find_prepared(one.statement, "postgresql")
            values = {**_list_constants(prepared), **_list_values(one, found)}
            # Text that SQLAlchemy wrote, without values of a request.
            sent = await driver.execute(prepared.sql.encode(), values, binary=one.has_bytes)
            waiting.append((prepared, sent))
    # Not in the pipeline, whose end waits for another answer.
    await receive()
    return found


def _list_values(read: Read, found: Sequence[Rows]) -> Values:
    return read.values(found) if callable(read.values) else read.values


def _list_constants(prepared: Prepared) -> Values:
    if not prepared.computed:
        return prepared.constants
    return {**prepared.constants, **{name: compute() for name, compute in prepared.computed}}


def _find_prepared(statement: Any, dialect_name: str) -> Prepared:
    return statement if isinstance(statement, Prepared) else _prepare_once(statement, dialect_name)


def prepare(statement: Any, dialect_name: str) -> Prepared:
    """Returns the SQL of a select that is executed several times now and never again."""
    dialect = DIALECTS[dialect_name]
    compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    columns = list(statement.selected_columns)
    found = [column.type.dialect_impl(dialect) for column in columns]
    processors = [one.result_processor(dialect, _DOUBLE) for one in found]
    names = [column.key for column in columns]
    row = namedtuple("row", names)  # type: ignore[misc]  # noqa: PYI024
    return Prepared(
        str(compiled),
        compiled.positiontup or (),
        {name: _store(value, dialect) for name, value in compiled.params.items()},
        [(name, one.callable) for name, one in compiled.binds.items() if one.callable is not None],
        row._make,
        [(place, one) for place, one in enumerate(processors) if one is not None],
    )


_prepare_once = lru_cache(512)(prepare)


def _store(value: Any, dialect: Any) -> Any:
    """Returns a constant as the driver takes it."""
    is_time = isinstance(value, datetime)
    return Timestamp().process_bind_param(value, dialect) if is_time else value


def _read_rows(prepared: Prepared, rows: Sequence[Sequence[Any]]) -> list[Any]:
    if not prepared.processors:
        return [prepared.row(row) for row in rows]
    found = []
    for row in rows:
        values = list(row)
        for place, convert in prepared.processors:
            values[place] = convert(values[place])
        found.append(prepared.row(values))
    return found
