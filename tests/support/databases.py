"""Deletes the rows of test databases between tests."""

import psycopg
from psycopg import sql

_KEPT = "alembic_version"


def delete_rows(url: str) -> None:
    """Deletes all rows of a PostgreSQL database and restarts its sequences.

    Tables that are empty already are skipped.
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
