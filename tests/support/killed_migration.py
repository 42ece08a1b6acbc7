"""Kills a migration at each statement that writes, and then lets it finish.

    python -m tests.support.killed_migration URL

Applies the steps that a database lacks, one after another. For each step a child process is started
that kills itself with SIGKILL before its first statement, then one for its second statement, and so
on, until a child has applied the step. The commit counts as a statement. After each kill the
database must be as it was before. Prints the number of kills of each step. Forks, so no other
thread may run in this process.
"""

import json
import os
import signal
import sys
import traceback
from typing import Any

import sqlalchemy as sa
from alembic.script import ScriptDirectory

import app.db.models
import migrations.types
from app.db import migrate

PRELOADED = (app.db.models, migrations.types)
"""What a migration imports; forked processes that had to import it would take most of the time."""

MAX_STATEMENTS = 3_000
"""A step with more statements is refused, so that a defect does not run for ever."""

_SCHEMA = {
    "sqlite": ("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name <> 'sqlite_stat1'",),
    "postgresql": (
        (
            "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, "
            "column_default FROM information_schema.columns WHERE table_schema = 'public'"
        ),
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        (
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated "
            "FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
        ),
        "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'",
    ),
}
"""Queries for the schema of a database, without its statistics, by its dialect."""

READS = ("BEGIN", "SELECT", "PRAGMA")
"""A kill before a statement that reads leaves what a kill before the next one that writes does."""


def list_missing_revisions(url: str) -> list[str]:
    """Returns the revisions that a database lacks, the first one first."""
    script = ScriptDirectory.from_config(migrate.build_config())
    with migrate._connection(url) as connection:
        found = migrate.read_version(connection)
    missing = [revision.revision for revision in script.walk_revisions(found or "base", "head")]
    return [revision for revision in reversed(missing) if revision != found]


def kill_at_each_statement(url: str) -> dict[str, int]:
    """Applies the missing steps; returns the number of kills in each.

    Raises:
        AssertionError: If a killed step changed the database without being complete.
    """
    counts = {}
    for revision in list_missing_revisions(url):
        before = read_content(url)
        for number in range(1, MAX_STATEMENTS):
            status = _upgrade_in_a_child(url, revision, kill_at=number)
            after = read_content(url)
            if status == 0:
                assert after["alembic_version"] == revision
                counts[revision] = number - 1
                break
            assert os.WTERMSIG(status) == signal.SIGKILL, f"{revision} failed: {status}"
            assert after == before, f"{revision} left changes when killed at statement {number}"
        else:
            raise AssertionError(f"{revision} has {MAX_STATEMENTS} statements or more")
    return counts


def read_content(url: str) -> dict[str, Any]:
    """Returns the schema, the number of rows of each table, and the schema's version."""
    with migrate._connection(url) as connection:
        tables = sa.inspect(connection).get_table_names()
        counts = [
            sa.select(sa.literal(table), sa.func.count()).select_from(sa.table(table))
            for table in tables
        ]
        rows = connection.execute(sa.union_all(*counts)).all() if counts else []
        return {
            "alembic_version": migrate.read_version(connection),
            "schema": read_schema_texts(connection),
            "rows": {row[0]: row[1] for row in rows},
        }


def read_schema_texts(connection: sa.Connection) -> list[str]:
    """Returns the SQL text of each table, column, index and constraint.

    Alembic writes the constraints of a table that it copies in SQLite in no fixed order, so the
    lines of a statement are sorted.
    """
    queries = _SCHEMA[connection.dialect.name]
    rows = [row for query in queries for row in connection.execute(sa.text(query)).all()]
    return sorted(
        repr([sorted(line.strip(" ,\t") for line in str(value).split("\n")) for value in row])
        for row in rows
    )


def _upgrade_in_a_child(url: str, revision: str, kill_at: int) -> int:
    """Upgrades in a forked process that dies before its statement `kill_at`.

    Returns its wait status.
    """
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = 1
    try:
        _kill_before(kill_at)
        migrate.upgrade(url, revision)
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def _kill_before(number: int) -> None:
    reached = 0
    has_written = False

    def reach() -> None:
        nonlocal reached
        reached += 1
        if reached == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def before_statement(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal has_written
        if not statement.lstrip().startswith(READS):
            has_written = True
            reach()

    def before_commit(_connection: Any) -> None:
        nonlocal has_written
        if has_written:
            has_written = False
            reach()

    sa.event.listen(sa.Engine, "before_cursor_execute", before_statement)
    sa.event.listen(sa.Engine, "commit", before_commit)


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(kill_at_each_statement(sys.argv[1]))}\n")
