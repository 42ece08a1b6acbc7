"""Empties databases between tests."""

import psycopg
from psycopg import sql

_KEPT = "alembic_version"


def empty(url: str) -> None:
    """Deletes all rows of a PostgreSQL database and starts its counters anew.

    Tables that are empty cost nothing.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            )
        ]
        used = [name for name in names if name != _KEPT and _has_rows(connection, name)]
        if used:
            tables = sql.SQL(", ").join(sql.Identifier(name) for name in used)
            connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(tables))


def _has_rows(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> bool:
    return (
        connection.execute(
            sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(name))
        ).fetchone()
        is not None
    )
