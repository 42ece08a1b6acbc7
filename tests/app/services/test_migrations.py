"""Migrations are applied whole or not at all, and can be taken back."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from app.db import migrate
from app.db.startup_check import DatabaseStartError, check_database, list_revisions
from tests.support.killed_migration import read_content
from tests.support.postgres import PostgresServer
from tests.support.process_stack import REPOSITORY

pytestmark = pytest.mark.both_databases(
    "Each migration has statements for each database.", of=("app.db.migrate",)
)
STORED = Path(__file__).parents[2] / "assets" / "stored" / "schema-0043"
LEFT_OUT = "ix_curve_blocks_not_converted"
"""Index of the former steps that nothing uses; it stays in databases that have it."""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> str:
    """URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'palestra.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create_database(f"migrations_{worker_id}")


@pytest.mark.processes
@pytest.mark.extended
def test_a_migration_that_is_killed_at_any_statement_changes_nothing(url: str) -> None:
    program = [sys.executable, "-m", "tests.support.killed_migration", url]
    done = subprocess.run(program, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr
    kills: dict[str, int] = json.loads(done.stdout)
    assert tuple(kills) == list_revisions()
    assert min(kills.values()) >= 2, "each step has a statement and a commit"
    assert read_content(url)["alembic_version"] == migrate.read_required_version()


def test_each_step_back_restores_the_former_schema(url: str) -> None:
    script = ScriptDirectory.from_config(migrate.build_config())
    revisions = [step.revision for step in script.walk_revisions("base", "head")]
    schemas = {"base": read_schema(url)}
    for revision in reversed(revisions):
        migrate.upgrade(url, revision)
        schemas[revision] = read_schema(url)
    assert not schemas["base"]
    assert len(schemas[migrate.read_required_version()]) > 200
    for revision in [*revisions[1:], "base"]:
        with migrate._connection(url) as connection:
            configuration = migrate.build_config()
            configuration.attributes["connection"] = connection
            command.downgrade(configuration, revision)
        assert read_schema(url) == schemas[revision], f"after the step back to {revision}"


def test_a_database_of_the_former_steps_has_the_schema_of_a_new_one(tmp_path: Path) -> None:
    """One migration replaced the steps 0001 to 0043; databases that they made open as they are."""
    former, new = (f"sqlite:///{tmp_path / name}.db" for name in ("former", "new"))
    with sqlite3.connect(tmp_path / "former.db") as connection:
        connection.executescript((STORED / "database" / "palestra.sql").read_text("utf-8"))
    connection.close()
    migrate.upgrade(new, "0043")
    expected, schema = read_schema(new), read_schema(former)
    indexes = "indexes of curve_blocks"
    schema[indexes] = [text for text in schema[indexes] if LEFT_OUT not in text]
    assert schema == expected


@pytest.mark.parametrize("version", ["0001", "0042"])
async def test_a_database_of_an_older_schema_is_refused_with_the_commit_that_upgrades_it(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "palestra.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (version,))
        connection.execute("CREATE TABLE runs (id INTEGER)")
    connection.close()
    content = path.read_bytes()
    expected = rf"schema {version}, .* from 0043 on: run `palestra db upgrade` of commit [0-9a-f]+"
    with pytest.raises(DatabaseStartError, match=expected):
        migrate.upgrade(f"sqlite:///{path}")
    with pytest.raises(DatabaseStartError, match=expected):
        await check_database(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    connection.close()
    assert tables == [("alembic_version",), ("runs",)]
    assert len(content) == path.stat().st_size


def read_schema(url: str) -> dict[str, Any]:
    """Returns columns, keys, indexes and constraints by table, without the order of columns."""
    with migrate._connection(url) as connection:
        inspector = sa.inspect(connection)
        parts: dict[str, Mapping[Any, Any]] = {
            "columns": inspector.get_multi_columns(),
            "primary key": inspector.get_multi_pk_constraint(),
            "foreign keys": inspector.get_multi_foreign_keys(),
            "indexes": inspector.get_multi_indexes(),
            "unique": inspector.get_multi_unique_constraints(),
        }
    return {
        f"{part} of {table}": _sort_texts(content)
        for part, tables in parts.items()
        for (_, table), content in tables.items()
        if table != "alembic_version"
    }


def _sort_texts(values: Any) -> list[str]:
    return sorted(_write_text(value) for value in values)


def _write_text(value: Any) -> str:
    # An index's condition is an object of SQLAlchemy, which str() writes as SQL.
    if isinstance(value, dict):
        return str(sorted((key, _write_text(part)) for key, part in value.items()))
    return str(value)
