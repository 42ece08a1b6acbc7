"""Notes the statements that a database executes, and one that it must end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

from sqlalchemy import event

from app.db.drivers.postgresql import PipelinedCursor
from app.db.engine import Database


def _build_endless() -> str:
    """Returns nested subqueries of 1,000 rows each, whose rows no database stores.

    The rows of an endless recursion, or of a join, fill the disk of PostgreSQL.
    """
    condition = "a.n > 0"
    for outer, inner in (("e", "f"), ("d", "e"), ("c", "d"), ("b", "c"), ("a", "b")):
        rows = f"SELECT count(*) FROM numbers {inner} WHERE {inner}.n <> {outer}.n AND {condition}"
        condition = f"({rows}) > 0"
    return (
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)"
        f" SELECT count(*) FROM numbers a WHERE {condition}"
    )


ENDLESS: Final = _build_endless()
"""A statement that ends only when the database ends it."""

_METHODS: Final = ("execute", "executemany")


@contextmanager
def note_statements(database: Database) -> Iterator[list[str]]:
    """Yields the statements that are executed in the block.

    Prepared statements are among them on PostgreSQL, and on SQLite those that look up directly.
    """
    noted: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        noted.append(statement)

    def noting(method: Any) -> Any:
        async def execute(
            cursor: PipelinedCursor, statement: str | bytes, *args: Any, **kwargs: Any
        ) -> Any:
            noted.append(statement if isinstance(statement, str) else statement.decode())
            return await method(cursor, statement, *args, **kwargs)

        return execute

    direct = database.open_direct()
    if database.dialect_name == "postgresql":
        methods = {name: noting(getattr(PipelinedCursor, name)) for name in _METHODS}
        with mock.patch.multiple(PipelinedCursor, **methods):
            yield noted
        return
    engines = {database.engine.sync_engine, database.writer.sync_engine}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    if direct is not None:
        direct.set_trace_callback(noted.append)
    try:
        yield noted
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)
        if direct is not None:
            direct.set_trace_callback(None)
