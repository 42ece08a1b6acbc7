"""The statistics for SQLite's planner name indexes that exist, and decide its plans."""

import sqlite3
from pathlib import Path

import pytest

from app.db.migrate import upgrade
from app.db.sqlite_statistics import _ROWS


@pytest.fixture
def connection(sqlite_file: Path) -> sqlite3.Connection:
    return sqlite3.connect(sqlite_file)


def test_each_row_is_of_an_index_with_so_many_columns(connection: sqlite3.Connection) -> None:
    stored = connection.execute("SELECT tbl, idx, stat FROM sqlite_stat1").fetchall()
    assert sorted(stored) == sorted(_ROWS)
    for table, name, stat in _ROWS:
        listed = connection.execute(f"PRAGMA index_list({table})").fetchall()
        # The index of a table without row IDs is its primary key.
        (index,) = (row[1] for row in listed if name in {row[1], table if row[3] == "pk" else ""})
        columns = connection.execute(f"PRAGMA index_info({index})").fetchall()
        assert len(stat.split()) <= len(columns) + 1


GIVEN = "IN (SELECT value FROM json_each(?))"


@pytest.mark.parametrize(
    ("table", "conditions", "index", "used"),
    [
        ("runs", f"project_id IN (?) AND state IN (?) AND id {GIVEN}", "runs_1", "id=?"),
        (
            "runs",
            f"project_id = ? AND created_at > ? AND experiment_id {GIVEN}",
            "runs_2",
            "project_id=? AND experiment_id=?",
        ),
        (
            "series_summaries",
            f"name_id = ? AND best > ? AND run_id {GIVEN}",
            "series_summaries_1",
            "run_id=? AND name_id=?",
        ),
        (
            "definition_members",
            "path = ? AND number = ? AND project_id = ?",
            "path_number",
            "path=? AND number=?",
        ),
    ],
)
def test_a_few_ids_are_looked_up_rather_than_all_rows_of_a_project(
    connection: sqlite3.Connection, table: str, conditions: str, index: str, used: str
) -> None:
    statement = f"EXPLAIN QUERY PLAN SELECT * FROM {table} WHERE {conditions}"
    plan = connection.execute(statement, ["[]", "[]", "[]"]).fetchall()[0][3]
    assert f"{index} ({used}" in plan, plan


def test_statistics_that_someone_gathered_are_replaced(sqlite_file: Path) -> None:
    with sqlite3.connect(sqlite_file) as connection:
        connection.execute("UPDATE sqlite_stat1 SET stat = '1 1' WHERE tbl = 'runs'")
    upgrade(f"sqlite:///{sqlite_file}")
    with sqlite3.connect(sqlite_file) as connection:
        stored = connection.execute("SELECT tbl, idx, stat FROM sqlite_stat1").fetchall()
    assert sorted(stored) == sorted(_ROWS)
