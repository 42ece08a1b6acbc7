"""The migration after which one event stands for all series of a run in a batch."""

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import migrate
from tests.support import postgres

pytestmark = pytest.mark.both_databases(
    "The migration has statements for each database.", of=("app.db.migrate",)
)


BEFORE, AFTER = "0024", "0025"
BLOCKS = {1: ("att_1", 1), 2: ("att_1", 1), 3: ("att_1", 1), 4: ("att_1", 7), 5: ("att_2", 1)}
"""Attempt and first record of each block, by its ID."""
EVENTS = (
    ("run", "run_1", {"id": "run_1"}),
    ("points", "run_1", {"series": "a", "block": 1}),
    ("points", "run_1", {"series": "b", "block": 2}),
    ("points", "run_2", {"series": "a", "block": 3}),
    ("log", "run_1", {"block": 1}),
    ("points", "run_1", {"series": "a", "block": 4}),
    ("points", "run_3", {"series": "a", "block": 5}),
    ("points", "run_3", {"series": "b", "block": 99}),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> str:
    """URL of a database with events of the former form; the block of the last one was deleted."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'old.db'}"
    else:
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create_database(f"points_events_{worker_id}")
    migrate.upgrade(url, BEFORE)
    with migrate._connection(url) as connection:
        at = "1" if connection.dialect.name == "sqlite" else "now()"
        if connection.dialect.name == "sqlite":
            connection.execute(sa.text("PRAGMA foreign_keys=OFF"))
        else:
            connection.execute(sa.text("SET session_replication_role = replica"))
        for block_id, (attempt_id, first_seq) in BLOCKS.items():
            connection.execute(
                sa.text(
                    "INSERT INTO series_blocks "
                    "(id, series_id, attempt_id, fence, first_seq, points, content) "
                    "VALUES (:id, :id, :attempt, 1, :first, 1, :content)"
                ),
                {"id": block_id, "attempt": attempt_id, "first": first_seq, "content": b""},
            )
        for kind, run_id, data in EVENTS:
            value = ":data" if connection.dialect.name == "sqlite" else "CAST(:data AS jsonb)"
            connection.execute(
                sa.text(
                    "INSERT INTO events (type, run_id, data, at) "
                    f"VALUES (:kind, :run, {value}, {at})"
                ),
                {"kind": kind, "run": run_id, "data": json.dumps(data)},
            )
        connection.commit()
    return url


def _read_events(url: str) -> list[tuple[Any, ...]]:
    with migrate._connection(url) as connection:
        found = connection.execute(sa.text("SELECT id, type, run_id, data FROM events ORDER BY id"))
        return [
            (key, kind, run, data if isinstance(data, dict) else json.loads(data))
            for key, kind, run, data in found
        ]


def test_the_first_event_of_a_run_in_a_batch_stands_for_all(old_url: str) -> None:
    migrate.upgrade(old_url, AFTER)
    assert _read_events(old_url) == [
        (1, "run", "run_1", {"id": "run_1"}),
        (2, "points", "run_1", {"attempt_id": "att_1", "first_seq": 1}),
        (4, "points", "run_2", {"attempt_id": "att_1", "first_seq": 1}),
        (5, "log", "run_1", {"block": 1}),
        (6, "points", "run_1", {"attempt_id": "att_1", "first_seq": 7}),
        (7, "points", "run_3", {"attempt_id": "att_2", "first_seq": 1}),
    ]
