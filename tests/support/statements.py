"""Notes the statements that a database executes, and one that it must end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from app.db.engine import Database

ENDLESS = (
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) "
    "SELECT count(*) FROM numbers"
)
"""A statement that ends only when the database ends it."""


@contextmanager
def note_statements(database: Database) -> Iterator[list[str]]:
    """Yields the statements that are executed in the block."""
    noted: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        noted.append(statement)

    engines = {database.engine.sync_engine, database.writer.sync_engine}
    direct = database.open_direct()
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
