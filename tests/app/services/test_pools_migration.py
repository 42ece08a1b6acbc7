"""The migration that makes pools of the names that workers and jobs of projects have."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from app.db import migrate
from app.db.migrate import build_config, upgrade
from migrations.types import document, instant
from tests.support import postgres

pytestmark = pytest.mark.both_databases(
    "The migration has statements for each database.", of=("app.db.migrate",)
)


BEFORE = "0016"
WORKERS = sa.table(
    "workers",
    *(sa.column(name) for name in ("id", "project_id", "name", "pool", "host", "boot_id")),
    *(sa.column(name) for name in ("pid", "slots", "gpu_count", "version", "silent_seconds")),
    *(sa.column(name, document()) for name in ("gpus", "work_order_versions", "hardware")),
    *(sa.column(name, document()) for name in ("packages", "catalogue")),
    *(sa.column(name) for name in ("draining", "created_by")),
    *(sa.column(name, instant()) for name in ("registered_at", "last_heartbeat_at")),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> str:
    """URL of a database with two projects whose workers have one name."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'old.db'}"
    else:
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database(f"pools_{worker_id}")
    upgrade(url, BEFORE)
    with migrate._connection(url) as connection:
        at = _encode_time(connection, 0)
        for table, columns, values in (
            ("projects", "id, name, slug", "'prj_1', 'one', 'one'"),
            ("projects", "id, name, slug", "'prj_2', 'two', 'two'"),
            ("users", "id, name", "'usr_1', 'ann'"),
        ):
            statement = f"INSERT INTO {table} ({columns}, created_at) VALUES ({values}, :at)"
            connection.execute(sa.text(statement), {"at": at})
        connection.execute(
            sa.insert(WORKERS),
            [
                _make_worker_row(connection, "wrk_1", "prj_1", "gpu", 60),
                _make_worker_row(connection, "wrk_2", "prj_2", "lab", 90),
            ],
        )
        connection.execute(
            sa.text("INSERT INTO events (type, data, at) VALUES ('worker', '{}', :at)"), {"at": at}
        )
        connection.commit()
    return url


def _encode_time(connection: sa.Connection, second: int) -> Any:
    at = datetime(2026, 3, 1, 12, second // 60, second % 60, tzinfo=UTC)
    is_sqlite = connection.dialect.name == "sqlite"
    return int(at.timestamp()) * 10**6 if is_sqlite else at


def _make_worker_row(
    connection: sa.Connection, worker_id: str, project_id: str, pool: str, second: int
) -> dict[str, Any]:
    at = _encode_time(connection, second)
    same = {"host": "h", "boot_id": "b", "pid": 1, "slots": 1, "gpu_count": 0, "version": "1"}
    documents = {"gpus": [], "work_order_versions": [1], "hardware": {}, "packages": {}}
    return {
        **same,
        **documents,
        "id": worker_id,
        "project_id": project_id,
        "name": "rig",
        "pool": pool,
        "catalogue": {},
        "silent_seconds": 20.0,
        "draining": False,
        "created_by": "usr_1",
        "registered_at": at,
        "last_heartbeat_at": at,
    }


def _read_rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with migrate._connection(url) as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


ADMITTED = (
    "SELECT pools.name, projects.slug FROM project_pools "
    "JOIN pools ON pools.id = project_pools.pool_id "
    "JOIN projects ON projects.id = project_pools.project_id ORDER BY 1, 2"
)


def test_pools_admit_the_projects_that_used_their_names(old_url: str) -> None:
    upgrade(old_url, "0017")
    assert _read_rows(old_url, ADMITTED) == [
        ("default", "one"),
        ("default", "two"),
        ("gpu", "one"),
        ("lab", "two"),
    ]
    assert _read_rows(old_url, "SELECT count(*) FROM events") == [(0,)]


def test_of_workers_with_one_name_the_latest_keeps_it(old_url: str) -> None:
    upgrade(old_url, "0017")
    names = "SELECT id, name, former_name FROM workers ORDER BY id"
    assert _read_rows(old_url, names) == [("wrk_1", "rig-2", "rig"), ("wrk_2", "rig", None)]


def test_the_step_back_gives_workers_to_a_project_of_their_pool(old_url: str) -> None:
    upgrade(old_url, "0017")
    with migrate._connection(old_url) as connection:
        configuration = build_config()
        configuration.attributes["connection"] = connection
        command.downgrade(configuration, BEFORE)
    workers = "SELECT id, project_id, name, created_by FROM workers ORDER BY id"
    assert _read_rows(old_url, workers) == [
        ("wrk_1", "prj_1", "rig", "usr_1"),
        ("wrk_2", "prj_2", "rig", "usr_1"),
    ]
    upgrade(old_url, "0017")
    assert len(_read_rows(old_url, ADMITTED)) == 4
