"""Each migration since the version before users, projects and pools can be taken back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from app.db import migrate
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.both_databases(
    "Each migration has statements for each database.", of=("app.db.migrate",)
)


FIRST = "0009"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> str:
    """URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'palestra.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.create_database(f"steps_back_{worker_id}")


def test_each_step_back_restores_the_former_schema(url: str) -> None:
    script = ScriptDirectory.from_config(migrate.build_config())
    revisions = [step.revision for step in script.walk_revisions(FIRST, "head")]
    schemas = {}
    for revision in reversed(revisions):
        migrate.upgrade(url, revision)
        schemas[revision] = read_schema(url)
    assert schemas[FIRST] != schemas[migrate.read_required_version()]
    for revision in revisions[1:]:
        with migrate._connection(url) as connection:
            configuration = migrate.build_config()
            configuration.attributes["connection"] = connection
            command.downgrade(configuration, revision)
        assert read_schema(url) == schemas[revision], f"after the step back to {revision}"


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
    }


def _sort_texts(found: Any) -> list[str]:
    return sorted(_write_text(one) for one in found)


def _write_text(value: Any) -> str:
    # An index's condition is an object of SQLAlchemy, which str() writes as SQL.
    if isinstance(value, dict):
        return str(sorted((key, _write_text(part)) for key, part in value.items()))
    return str(value)
