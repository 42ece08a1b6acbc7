"""Records of evaluations are stored compressed, one by one, and read byte by byte."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, select, text
from sqlalchemy.dialects import postgresql, sqlite

from app.db.engine import Database
from app.db.models import EvaluationRow
from app.db.record_text import RecordText
from app.db.repositories import evaluations, snapshots
from app.services.views import runs as run_views
from palestra.contract.telemetry import Evaluation
from tests.support import records
from tests.support.artifact_store import AttemptWithStore

both_databases = pytest.mark.both_databases(
    "Records are bytes on SQLite and text on PostgreSQL.", of=("app.db.record_text",)
)

DIALECTS = [sqlite.dialect(), postgresql.dialect()]  # type: ignore[no-untyped-call]
SPECIAL = ["NaN", "Infinity", "-Infinity", -0.0, 5e-324, 2.0**53 - 1, 0.1]


async def read_stored(database: Database) -> list[Any]:
    """Returns the values of the column as the database holds them."""
    async with database.read() as session:
        return list(await session.scalars(text("SELECT body FROM evaluations ORDER BY seq")))


async def read_bodies(database: Database) -> list[str]:
    async with database.read() as session:
        return list(await session.scalars(select(EvaluationRow.body).order_by(EvaluationRow.seq)))


def make_evaluation(run: str, env_step: int, returns: list[Any]) -> dict[str, Any]:
    return records.make_evaluation(run, env_step, "NaN") | {
        "returns": returns,
        "episodes": len(returns),
        "metrics": {"loss": "Infinity", "accuracy": -0.0},
    }


def to_text(record: dict[str, Any]) -> str:
    return Evaluation.model_validate_json(json.dumps(record)).model_dump_json()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_record_is_restored(members: str) -> None:
    record = f'{{"run":"{members}'
    for dialect in DIALECTS:
        stored = RecordText().process_bind_param(record, dialect)
        assert isinstance(stored, bytes if dialect.name == "sqlite" else str)
        assert RecordText().process_result_value(stored, dialect) == record


def test_threads_read_at_once() -> None:
    written = [f'{{"env_step":{number}}}' for number in range(2_000)]
    with ThreadPoolExecutor(8) as pool:
        stored = list(
            pool.map(lambda one: RecordText().process_bind_param(one, DIALECTS[0]), written)
        )
        found = pool.map(lambda one: RecordText().process_result_value(one, DIALECTS[0]), stored)
        assert list(found) == written


def test_a_record_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="another version"):
        RecordText().process_result_value(b"\x02abc", DIALECTS[0])


@both_databases
async def test_a_record_takes_less_than_two_thirds_and_reads_the_same(
    live_run: AttemptWithStore,
) -> None:
    database, run = live_run.database, live_run.run_id
    sent = [
        make_evaluation(run, 5, SPECIAL),
        make_evaluation(run, 9, [float(place % 500) for place in range(100_000)]),
        make_evaluation(run, 13, [float(place) for place in range(20)]),
    ]
    for one in sent:
        await live_run.send(one)
    expected = [to_text(one) for one in sent]
    assert await read_bodies(database) == expected
    stored = await read_stored(database)
    assert all(len(one) < len(body) * 2 / 3 for one, body in zip(stored, expected, strict=True))
    shown = sorted(
        await live_run.list_evaluations(superseded=False), key=lambda view: view.env_step
    )
    assert [repr(list(one.returns)) for one in shown] == [
        repr([float(value) for value in one["returns"]]) for one in sent
    ]


async def test_evaluations_of_jobs_and_snapshots_are_found_by_indexes(
    live_run: AttemptWithStore,
) -> None:
    database = live_run.database
    if database.engine.dialect.name != "sqlite":
        pytest.skip("the plan of PostgreSQL depends on the number of rows")
    statements: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.append((statement, parameters))

    async with database.read() as session:
        event.listen(database.engine.sync_engine, "before_cursor_execute", note)
        await evaluations.load_job_progress(session, "job")
        await snapshots.list_snapshot_evaluations(session, "snp")
        event.remove(database.engine.sync_engine, "before_cursor_execute", note)
        connection = await session.connection()
        plans = [
            str((await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {one}", values)).all())
            for one, values in statements
            if "evaluations" in one
        ]
    assert [re.findall(r"USING INDEX (\w+)", plan) for plan in plans] == [
        ["ix_evaluations_job_id"],
        ["ix_evaluations_snapshot_id"],
    ]


@both_databases
async def test_views_of_long_evaluations_are_not_kept(live_run: AttemptWithStore) -> None:
    run = live_run.run_id
    await live_run.send(make_evaluation(run, 1, [1.5]), make_evaluation(run, 2, [1.5] * 5_000))
    async with live_run.database.read() as session:
        short, long = await session.scalars(select(EvaluationRow).order_by(EvaluationRow.seq))
    run_views._build_evaluation_view.cache_clear()
    kept = run_views._build_evaluation_view.cache_info
    for row, added in ((short, 1), (long, 0)):
        before = kept().currsize
        for _ in range(2):
            assert len(run_views.build_evaluation_view(row).returns) == len(
                json.loads(row.body)["returns"]
            )
        assert kept().currsize == before + added
