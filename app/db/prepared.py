"""Statements that are compiled once and visit the database together.

The ordinary way to the database is a session and `select()`. This one is for statements that are
executed thousands of times a minute, where SQLAlchemy takes longer than the database: who calls,
batches of telemetry, pages of lists, curves. `tests/checks/test_prepared_users.py` lists the
modules that may use it, each with the figure that needs it.

A visit is a call of the connection's thread on SQLite, and a round trip on PostgreSQL. `fetch_all`
reads by several statements in one visit; `write` executes statements with the next visit or the
commit; `look_up` finds rows by keys without a transaction. Where statements depend on the rows of
others, they are a `Plan`, a generator that yields statements and is sent their rows:

    @cache
    def _select_runs() -> Any:
        return select(RunRow.id, RunRow.fence).where(is_listed(RunRow.id))

    (runs,) = await fetch_all(session, [Read(_select_runs(), {"ids": run_ids})])
    runs[0].fence

A statement must be the same object each time, and its columns need names. `docs/architecture.md`
compares the two ways.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg as postgresql
from sqlalchemy.exc import DBAPIError

from app.db.drivers.postgresql import PipelinedConnection
from app.db.engine import Database, Session

_DIALECTS: Final[Mapping[str, Any]] = {
    "sqlite": sqlite.dialect(paramstyle="qmark"),
    "postgresql": postgresql.PGDialectAsync_psycopg(),  # type: ignore[no-untyped-call]
}
_DOUBLE: Final = 701
"""Type code of PostgreSQL for the only type of fractions that is read."""
_Converter = Callable[[Any], Any]
Rows = Sequence[Any]
Values = Mapping[str, Any]
_Result = TypeVar("_Result")


class Prepared(NamedTuple):
    """The SQL of a statement, how its parameters are written, and how its rows are read."""

    sql: str
    names: Sequence[str]
    """The parameters in the order of their places; empty where they are named."""
    constants: Values
    computed: Sequence[tuple[str, Callable[[], Any]]]
    """Numbers that are computed for each execution, such as the clock's skew."""
    converters: Mapping[str, _Converter]
    """Conversions of parameters to what the driver takes."""
    row: Callable[..., Any]
    processors: Sequence[tuple[int, _Converter]]
    """Conversions of columns, by their places."""

    def bind(self, values: Values) -> Any:
        """Returns all parameters of an execution as the driver takes them."""
        bound = {**self.constants, **values}
        for name, compute in self.computed:
            bound[name] = compute()
        for name, convert in self.converters.items():
            if name in values:
                bound[name] = convert(values[name])
        return [bound[name] for name in self.names] if self.names else bound

    def read(self, rows: Sequence[Sequence[Any]]) -> Rows:
        """Returns the rows of a result, with attributes named as the columns."""
        if not self.processors:
            return [self.row(row) for row in rows]
        converted = []
        for row in rows:
            values = list(row)
            for place, convert in self.processors:
                values[place] = convert(values[place])
            converted.append(self.row(values))
        return converted


class Read(NamedTuple):
    """A select whose columns have names, and its parameters.

    The parameters may be a function of the rows of the reads before.
    """

    statement: Any
    values: Values | Callable[[Sequence[Rows]], Values]
    has_bytes: bool = False
    """Whether rows are mostly bytes: PostgreSQL sends those twice as fast in its binary form."""


class Write(NamedTuple):
    """A statement with the parameters of one or more executions."""

    statement: Any
    rows: Sequence[Values]


Plan = Generator[Sequence[Read], list[Rows], _Result]
"""Statements that are executed together, step by step."""


def prepare(statement: Any, dialect_name: str, columns: Sequence[str] = ()) -> Prepared:
    """Compiles a statement.

    Args:
        statement: A select, insert, update or delete.
        dialect_name: `sqlite` or `postgresql`.
        columns: Columns that an insert sets by its parameters.
    """
    dialect = _DIALECTS[dialect_name]
    compiled = statement.compile(
        dialect=dialect,
        column_keys=list(columns) or None,
        compile_kwargs={"render_postcompile": True},
    )
    converters: dict[str, _Converter] = {}
    constants: dict[str, Any] = {}
    computed = []
    for name, value in compiled.params.items():
        # The values of an IN list are parameters of their own, named by their places in the list.
        key = name if name in compiled.binds else name.rpartition("_")[0]
        bind = compiled.binds[key]
        convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if convert is not None:
            converters[name] = convert
        if bind.callable is not None:
            computed.append((name, bind.callable))
        elif not bind.required or key != name:
            constants[name] = value if convert is None or value is None else convert(value)
    selected = list(getattr(statement, "selected_columns", ()))
    types = [column.type.dialect_impl(dialect) for column in selected]
    processors = [kind.result_processor(dialect, _DOUBLE) for kind in types]
    names = [column.key for column in selected]
    row = namedtuple("row", names)  # type: ignore[misc]  # noqa: PYI024
    return Prepared(
        str(compiled),
        compiled.positiontup or (),
        constants,
        computed,
        converters,
        row._make,
        [(place, convert) for place, convert in enumerate(processors) if convert is not None],
    )


_prepare_once = lru_cache(640)(prepare)


async def _write_changes(session: Session) -> None:
    """Writes what was added or changed in a session, as its own queries do before they read."""
    if session.autoflush and (session.dirty or session.new or session.deleted):
        await session.flush()


async def fetch_all(session: Session, reads: Sequence[Read]) -> list[Rows]:
    """Returns the rows of each statement, with attributes named as its columns."""
    return await carry_out(session, _plan_one_step(reads))


def _plan_one_step(reads: Sequence[Read]) -> Plan[list[Rows]]:
    return (yield reads)


async def carry_out(session: Session, plan: Plan[_Result]) -> _Result:
    """Returns what a plan reads in the session's transaction.

    It takes one visit to SQLite, and one round trip to PostgreSQL for each step of the plan.
    """
    await _write_changes(session)
    connection = await session.connection()
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    if connection.dialect.name == "sqlite":
        result: _Result = await driver.call_in_thread(
            lambda sqlite: _carry_out_on_sqlite(sqlite, plan)
        )
        return result
    try:
        return await _carry_out_on_postgresql(driver, plan)
    except psycopg.Error as error:
        raise DBAPIError.instance("", None, error, psycopg.Error) from error


async def look_up(source: Database | Session, read: Read) -> Rows:
    """Returns the rows of a statement that finds a few rows by keys.

    SQLite answers it on the calling thread if `source` is a database: that takes a fraction of the
    time of a call of another thread, as long as the pages are in memory.
    """
    if not isinstance(source, Database):
        return (await fetch_all(source, [read]))[0]
    try:
        direct = source.open_direct()
        if direct is not None:
            return _fetch(direct, [read])[0]
    except (DBAPIError, sqlite3.Error):
        pass  # It may be locked for a moment; the other connections wait for that.
    async with source.open_without_transaction() as session:
        return await look_up(session, read)


async def write(session: Session, writes: Sequence[Write]) -> None:
    """Executes statements in order; those without rows are left out.

    They are executed with the session's next statement or with its commit, which raises their
    errors.
    """
    await _write_changes(session)
    connection = await session.connection()
    await connection.run_sync(write_on, writes)


def write_on(connection: Connection, writes: Sequence[Write]) -> None:
    """Executes statements as `write` does, on a connection whose changes are written."""
    driver: Any = connection.connection.driver_connection
    name = connection.dialect.name
    statements = []
    for statement, rows in writes:
        if rows:
            prepared = _prepare_once(statement, name, tuple(rows[0]))
            statements.append((prepared.sql, [prepared.bind(row) for row in rows]))
    if name != "sqlite":
        for sql, bound in statements:
            driver.defer(sql, bound)
    elif statements:
        driver.defer(lambda connection: _execute_all(connection, statements))


def _execute_all(
    connection: sqlite3.Connection, statements: Sequence[tuple[str, Sequence[Any]]]
) -> None:
    for sql, rows in statements:
        try:
            connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise DBAPIError.instance(sql, None, error, sqlite3.Error) from error


def _carry_out_on_sqlite(driver: sqlite3.Connection, plan: Plan[_Result]) -> _Result:
    try:
        reads = next(plan)
        while True:
            reads = plan.send(_fetch(driver, reads))
    except StopIteration as end:
        result: _Result = end.value
        return result


def _fetch(driver: sqlite3.Connection, reads: Sequence[Read]) -> list[Rows]:
    results: list[Rows] = []
    for read in reads:
        prepared = _prepare_once(read.statement, "sqlite")
        values = read.values(results) if callable(read.values) else read.values
        try:
            rows = driver.execute(prepared.sql, prepared.bind(values)).fetchall()
        except sqlite3.Error as error:
            raise DBAPIError.instance(prepared.sql, None, error, sqlite3.Error) from error
        results.append(prepared.read(rows))
    return results


async def _carry_out_on_postgresql(driver: PipelinedConnection, plan: Plan[_Result]) -> _Result:
    try:
        reads = next(plan)
        while True:
            reads = plan.send(await _fetch_together(driver, reads))
    except StopIteration as end:
        result: _Result = end.value
        return result


async def _fetch_together(driver: PipelinedConnection, reads: Sequence[Read]) -> list[Rows]:
    results: list[Rows] = []
    sent: list[tuple[Prepared, psycopg.AsyncCursor]] = []

    async def receive() -> None:
        for prepared, cursor in sent:
            results.append(prepared.read(await cursor.fetchall()))
        sent.clear()

    async with driver.pipeline():
        await driver.send_deferred()
        for read in reads:
            values = read.values
            if callable(values):
                await receive()
                values = values(results)
            prepared = _prepare_once(read.statement, "postgresql")
            # Text that SQLAlchemy wrote, without values of a request.
            cursor = await driver.execute(
                prepared.sql.encode(), prepared.bind(values), binary=read.has_bytes
            )
            sent.append((prepared, cursor))
    # Not in the pipeline, whose end waits for another answer.
    await receive()
    return results
