"""The migration that makes a chain of an older database's audit log.

It can be interrupted and repeated.
"""

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from app.db import migrate
from app.db.engine import Database
from app.db.migrate import build_config, read_required_version, read_version, upgrade
from app.db.startup_check import DatabaseStartError
from migrations.types import big_key, document, instant
from tests.app.services.test_audit_chain import check_chain
from tests.support import postgres

pytestmark = pytest.mark.both_databases(
    "The migration has statements for each database.", of=("app.db.migrate",)
)


BEFORE, AFTER = "0009", "0010"
BEGIN = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
ACTORS = ("user:usr_1", "token:tok_1", "token:tok_gone", "attempt:att_1", "daemon:reaper")
OLD_AUDIT = sa.table(
    "audit",
    sa.column("id", big_key()),
    sa.column("project_id"),
    sa.column("actor"),
    sa.column("action"),
    sa.column("object_type"),
    sa.column("object_id"),
    sa.column("data", document()),
    sa.column("at", instant()),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> str:
    """URL of a database with the schema before the chain.

    It has a project, a user and a token.
    """
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'old.db'}"
    else:
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database(f"old_{worker_id}")
    upgrade(url, BEFORE)
    with migrate._connection(url) as connection:
        at = _encode_time(connection, BEGIN)
        for table, columns, values in (
            ("projects", "id, name", "'prj_1', 'p'"),
            ("users", "id, name", "'usr_9', 'ann'"),
            (
                "tokens",
                "id, project_id, user_id, name, secret_hash, scopes",
                "'tok_1', 'prj_1', 'usr_9', 't', 'h', '[]'",
            ),
        ):
            statement = f"INSERT INTO {table} ({columns}, created_at) VALUES ({values}, :at)"
            connection.execute(sa.text(statement), {"at": at})
        connection.commit()
    return url


def _encode_time(connection: sa.Connection, at: datetime) -> Any:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    is_sqlite = connection.dialect.name == "sqlite"
    return (at - epoch) // timedelta(microseconds=1) if is_sqlite else at


def add_entries(url: str, count: int) -> None:
    """Adds entries whose IDs have gaps, as rolled back transactions leave them."""
    with migrate._connection(url) as connection:
        rows = [
            {
                "id": 3 * i + 5,
                "project_id": "prj_1",
                "actor": ACTORS[i % len(ACTORS)],
                "action": "job.move",
                "object_type": "job",
                "object_id": f"job_{i}",
                "data": {"reason": "Grüße 🙂", "b": i, "a": [0.5, None, 10**20]},
                "at": _encode_time(connection, BEGIN + timedelta(seconds=i, microseconds=i)),
            }
            for i in range(count)
        ]
        connection.execute(sa.insert(OLD_AUDIT), rows)
        connection.commit()


async def assert_migrated(url: str, count: int) -> None:
    """Asserts that a migrated database has the entries of `add_entries` as a chain."""
    database = Database(url)
    try:
        found = await check_chain(database)
        assert len(found) == count
        for i, row in enumerate(found):
            assert row.object_id == f"job_{i}"
            assert row.at == BEGIN + timedelta(seconds=i, microseconds=i)
            assert row.data == {"reason": "Grüße 🙂", "b": i, "a": [0.5, None, 10**20]}
        assert [(row.user_id, row.credential) for row in found[:5]] == [
            ("usr_1", None),
            ("usr_9", "tok_1"),
            (None, "tok_gone"),
            (None, "att_1"),
            (None, None),
        ]
    finally:
        await database.dispose()


async def test_entries_of_an_older_database_are_chained_in_their_order(old_url: str) -> None:
    add_entries(old_url, 12_345)
    assert upgrade(old_url) == read_required_version()
    await assert_migrated(old_url, 12_345)


def test_a_database_without_entries_is_migrated(old_url: str) -> None:
    assert upgrade(old_url) == read_required_version()
    with migrate._connection(old_url) as connection:
        for table in ("audit", "audit_chain"):
            assert connection.execute(sa.text(f"SELECT COUNT(*) FROM {table}")).scalar() == 0


class SimulatedKill(BaseException):
    """Simulates a killed process: no code catches it, and the connection is closed."""


async def test_a_migration_that_is_killed_at_any_statement_is_applied_again(
    old_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_entries(old_url, 40)
    statements: list[str] = []
    stop_at = 0

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)
        if len(statements) == stop_at:
            raise SimulatedKill

    opened = migrate._sync_engine

    def open_counting_engine(url: str) -> sa.Engine:
        engine = opened(url)
        sa.event.listen(engine, "before_cursor_execute", count)
        return engine

    monkeypatch.setattr(migrate, "_sync_engine", open_counting_engine)
    while True:
        stop_at += 1
        statements.clear()
        try:
            upgrade(old_url, AFTER)
        except (SimulatedKill, DatabaseStartError):
            # After the kill, Alembic's clean-up of a copied table fails.
            assert stop_at < 500
            continue
        break
    assert stop_at > 15, "every statement was reached"
    monkeypatch.undo()
    upgrade(old_url)
    await assert_migrated(old_url, 40)


async def test_the_migration_can_be_downgraded(old_url: str) -> None:
    add_entries(old_url, 40)
    upgrade(old_url)
    with migrate._connection(old_url) as connection:
        for project in ("NULL", "'prj_deleted'"):
            connection.execute(
                sa.text(
                    "INSERT INTO audit SELECT id + 40, "
                    f"{project}, actor, user_id, credential, address, action, object_type, "
                    "object_id, outcome, code, count, data, at, previous_hash, hash FROM audit "
                    f"WHERE id = {1 if project == 'NULL' else 2}"
                )
            )
        connection.commit()
        configuration = build_config()
        configuration.attributes["connection"] = connection
        command.downgrade(configuration, BEFORE)
        assert read_version(connection) == BEFORE
        kept = connection.execute(sa.select(OLD_AUDIT).order_by(OLD_AUDIT.c.id)).all()
        assert [row.object_id for row in kept] == [f"job_{i}" for i in range(40)]
        assert kept[3].data == {"reason": "Grüße 🙂", "b": 3, "a": [0.5, None, 10**20]}
        connection.commit()
        new = {name: value for name, value in kept[0]._mapping.items() if name != "id"}
        connection.execute(sa.insert(OLD_AUDIT), [new])
        connection.commit()
    upgrade(old_url)


def test_the_stored_database_of_the_first_version_is_migrated(tmp_path: Path) -> None:
    """The stored database of version 0.1.0 has entries that the migration chains."""
    stored = Path(__file__).parents[2] / "assets" / "stored" / "0.1.0-before-the-moves"
    path = tmp_path / "palestra.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((stored / "database" / "palestra.sql").read_text("utf-8"))
        before = connection.execute("SELECT actor, data FROM audit ORDER BY id").fetchall()
    connection.close()
    upgrade(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        after = connection.execute("SELECT actor, data FROM audit ORDER BY id").fetchall()
    connection.close()
    assert len(before) == 9
    assert [(actor, json.loads(data)) for actor, data in after] == [
        (actor, json.loads(data)) for actor, data in before
    ]
