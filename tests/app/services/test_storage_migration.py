"""The migration that counts the stored bytes of existing projects."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from app.db import migrate
from tests.support import postgres

pytestmark = pytest.mark.both_databases(
    "The migration has statements for each database.", of=("app.db.migrate",)
)


BEFORE, AFTER = "0017", "0018"
PROJECTS = {"prj_1": (3, 2**40), "prj_2": (7,), "prj_3": ()}
"""Sizes of the blobs of each project."""


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> str:
    """URL of a database with blobs of two projects, and a project without one."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'old.db'}"
    else:
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database(f"storage_{worker_id}")
    migrate.upgrade(url, BEFORE)
    with migrate._connection(url) as connection:
        at = "1" if connection.dialect.name == "sqlite" else "now()"
        for project_id, sizes in PROJECTS.items():
            row = {"id": project_id, "name": project_id, "slug": project_id}
            _insert(connection, "projects", at, row)
            for size in sizes:
                row = {"id": f"{project_id}-{size}", "project_id": project_id, "sha256": "x"}
                _insert(connection, "blobs", at, {**row, "size": size})
        connection.commit()
    return url


def _insert(connection: sa.Connection, table: str, at: str, row: dict[str, Any]) -> None:
    names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
    statement = f"INSERT INTO {table} ({names}, created_at) VALUES ({places}, {at})"
    connection.execute(sa.text(statement), row)


def _used(url: str) -> dict[str, Any]:
    with migrate._connection(url) as connection:
        rows = connection.execute(sa.text("SELECT id, storage_used FROM projects"))
        return dict(rows.all())


def test_existing_projects_count_the_bytes_of_their_blobs(old_url: str) -> None:
    migrate.upgrade(old_url, AFTER)
    assert _used(old_url) == {project_id: sum(sizes) for project_id, sizes in PROJECTS.items()}


def test_the_migration_counts_anew_after_a_step_back(old_url: str) -> None:
    migrate.upgrade(old_url, AFTER)
    with migrate._connection(old_url) as connection:
        configuration = migrate.build_config()
        configuration.attributes["connection"] = connection
        command.downgrade(configuration, BEFORE)
        connection.execute(sa.text("DELETE FROM blobs WHERE size = 3"))
        connection.commit()
    migrate.upgrade(old_url, AFTER)
    assert _used(old_url) == {"prj_1": 2**40, "prj_2": 7, "prj_3": 0}
