"""The ordinary server, which notes how long each of its writing transactions is open.

A transaction of SQLite is timed from the moment at which it has the lock of writers, one of
PostgreSQL from its beginning, which includes waits for rows. Both end when the commit or the
rollback has returned.

    python -m benchmarks._attacks.timed_server FILE
"""

import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from app import main
from app.db.drivers.postgresql import PipelinedConnection
from app.db.drivers.sqlite import SingleCallConnection
from app.db.engine import BEGINNINGS, Database, Session
from app.private_files import make_files_private

_WRITES = {
    SingleCallConnection: BEGINNINGS["sqlite"][1],
    PipelinedConnection: BEGINNINGS["postgresql"][1],
}
"""Statements that begin a transaction that writes."""
_NOT_UNITS = {__file__, contextlib.__file__}
_unit: ContextVar[str] = ContextVar("unit", default="unknown")
"""Route or function that opened the present writing session."""


class Transaction(NamedTuple):
    """A writing transaction that has ended."""

    unit: str
    seconds: float
    ended_at: float
    """Seconds since the Unix epoch."""


def read_transactions(file: Path) -> list[Transaction]:
    """Returns what a timed server has noted so far."""
    rows = (line.split("\t") for line in file.read_text("utf-8").splitlines())
    return [Transaction(unit, float(seconds), float(at)) for unit, seconds, at in rows]


def time_transactions(file: Path) -> None:
    """Notes all transactions of this process from now on."""
    output = file.open("a", encoding="utf-8", buffering=1)

    def note(unit: str, begun: float) -> None:
        output.write(f"{unit}\t{time.perf_counter() - begun:.6f}\t{time.time():.6f}\n")

    for name in ("write", "trial"):
        setattr(Database, name, _name_units(getattr(Database, name)))
    for kind, statement in _WRITES.items():
        _time(kind, statement, note)


def _name_units(open_session: Callable[[Database], Any]) -> Callable[[Database], Any]:
    @asynccontextmanager
    async def opened(database: Database) -> AsyncIterator[Session]:
        _unit.set(_find_unit())
        async with open_session(database) as session:
            yield session

    return opened


def _find_unit() -> str:
    frame: Any = sys._getframe()  # noqa: SLF001 - the callers of a coroutine are in no other place
    while frame.f_code.co_filename in _NOT_UNITS:
        frame = frame.f_back
    request = frame.f_locals.get("request")
    if frame.f_code.co_name == "write_session":
        return f"{request.method} {request.scope['route'].path}"
    return f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"


def _time(kind: Any, writes: str, note: Callable[[str, float], None]) -> None:
    begin, ends = kind.begin, {name: getattr(kind, name) for name in ("commit", "rollback")}

    def timed_begin(connection: Any, statement: str | None, seconds: float | None) -> None:
        begin(connection, statement, seconds)
        connection.timed = None
        if statement != writes:
            return
        unit = _unit.get()

        def start(*_: Any) -> None:
            connection.timed = unit, time.perf_counter()

        if kind is SingleCallConnection:
            # Follows the statement that waits for the lock.
            connection.defer(start)
        else:
            start()

    def wrap(end: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def timed_end(connection: Any) -> None:
            try:
                await end(connection)
            finally:
                timed = getattr(connection, "timed", None)
                connection.timed = None
                if timed is not None:
                    note(*timed)

        return timed_end

    kind.begin = timed_begin
    for name, end in ends.items():
        setattr(kind, name, wrap(end))


if __name__ == "__main__":
    make_files_private()
    time_transactions(Path(sys.argv[1]))
    sys.exit(main.main(sys.argv[2:]))
