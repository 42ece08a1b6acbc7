"""Batches that can never be stored, on both databases.

Each is refused with its own error code and the position of the record.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog
from sqlalchemy import text

from app.db.engine import Database
from app.domain.errors import DomainError, ForbiddenError, InvalidError, UnavailableError
from app.services.telemetry.group_commit import Intake
from palestra.contract.names import MAX_STEP, new_id
from tests.support import records
from tests.support.artifact_store import AttemptWithStore, make_file_entry
from tests.support.records import Json, make_delivery

pytestmark = pytest.mark.both_databases(
    "Each database refuses other values, with errors of its own.",
    of=(
        "app.db.faults",
        "app.db.repositories.telemetry",
    ),
)


FILE = make_file_entry("weights", b"1234")


@pytest.fixture(autouse=True)
def _plain_tracebacks() -> Iterator[None]:
    """Configures logging as the server does.

    structlog's default renders every local variable, which takes longer than the test.
    """
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    yield
    structlog.reset_defaults()


@pytest.fixture
async def intake(database: Database) -> AsyncIterator[Intake]:
    started = Intake(database)
    task = asyncio.create_task(started.run())
    yield started
    task.cancel()
    await asyncio.wait([task])


async def _send_refused(intake: Intake, live_run: AttemptWithStore, *content: Json) -> DomainError:
    with pytest.raises(DomainError) as caught:
        await intake.take(make_delivery(live_run.attempt_id, live_run.seq + 1, content))
    return caught.value


def _make_snapshot(
    live_run: AttemptWithStore, snapshot_id: str | None = None, **changes: Any
) -> Json:
    return {
        **records.make_snapshot(live_run.run_id, snapshot_id or new_id("snp"), 10, [FILE]),
        **changes,
    }


POISON = {
    "one file twice": (
        lambda at: _make_snapshot(at, files=[FILE, make_file_entry("state", b"x"), FILE]),
        "duplicate_file",
        "/files/2",
    ),
    "more bytes than a column holds": (
        lambda at: _make_snapshot(
            at, files=[{**FILE, "name": f"f{index}", "size": MAX_STEP} for index in range(2_000)]
        ),
        "snapshot_too_large",
        "/files",
    ),
    "a format that no column holds": (
        lambda at: _make_snapshot(at, format_version=2**31),
        "unknown_format",
        "/format_version",
    ),
    "a format that no integer holds": (
        lambda at: _make_snapshot(at, format_version=10**30),
        "unknown_format",
        "/format_version",
    ),
    "a metric whose curve has too long a name": (
        lambda at: records.make_system_record(at.run_id, **{"m" * 122: 1.0}),
        "name_too_long",
        "/values",
    ),
}


@pytest.mark.parametrize("name", POISON)
async def test_an_unstorable_record_is_refused_and_its_batch_can_be_corrected(
    live_run: AttemptWithStore, intake: Intake, name: str
) -> None:
    """Regression: such batches were answered 503 `storage`, which asks the worker to retry."""
    make, code, where = POISON[name]
    good = records.make_points(live_run.run_id, "loss", [1])
    refusal = await _send_refused(intake, live_run, good, make(live_run), good)
    assert isinstance(refusal, InvalidError)
    assert (refusal.code, refusal.pointer) == (code, f"/records/1{where}")
    assert await intake.take(make_delivery(live_run.attempt_id, 1, [good, good])) == 2


async def test_a_repeated_snapshot_id_is_refused(
    live_run: AttemptWithStore, intake: Intake
) -> None:
    """The repetition may be in the same batch or in a later one."""
    used = new_id("snp")
    refusal = await _send_refused(
        intake,
        live_run,
        _make_snapshot(live_run, used),
        records.make_points(live_run.run_id, "x", [1]),
        _make_snapshot(live_run, used),
    )
    assert (refusal.code, refusal.pointer) == ("snapshot_exists", "/records/2")
    assert (
        await intake.take(make_delivery(live_run.attempt_id, 1, [_make_snapshot(live_run, used)]))
        == 1
    )
    live_run.seq = 1
    assert (
        await _send_refused(intake, live_run, _make_snapshot(live_run, used))
    ).pointer == "/records/0"


async def test_the_record_that_exceeds_the_series_limit_is_named(
    live_run: AttemptWithStore, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the error named the batch and not the record."""
    monkeypatch.setattr("app.services.telemetry.record_rows.MAX_SERIES_PER_RUN", 3)
    content = [
        records.make_points(live_run.run_id, name, [1]) for name in ("a", "b", "a", "c", "d", "e")
    ]
    refusal = await _send_refused(intake, live_run, *content)
    assert (refusal.code, refusal.pointer) == ("too_many_metrics", "/records/4")


async def test_a_record_of_another_run_is_named(live_run: AttemptWithStore, intake: Intake) -> None:
    """The error names the record."""
    refusal = await _send_refused(
        intake,
        live_run,
        records.make_points(live_run.run_id, "a", [1]),
        records.make_points("run_" + "0" * 26, "a", [1]),
    )
    assert isinstance(refusal, ForbiddenError)
    assert (refusal.code, refusal.pointer) == ("other_run", "/records/1")


_RAISE = (
    "BEGIN IF NEW.name = 'poison' THEN RAISE EXCEPTION 'poison' USING ERRCODE = '23514'; END "
    "IF; RETURN NEW; END"
)
_MAKE = {
    "sqlite": [
        (
            "CREATE TRIGGER poison BEFORE INSERT ON series WHEN NEW.name = 'poison' BEGIN "
            "SELECT RAISE(ABORT, 'poison'); END"
        )
    ],
    "postgresql": [
        f"CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ {_RAISE} $$",
        "CREATE TRIGGER poison BEFORE INSERT ON series FOR EACH ROW EXECUTE FUNCTION poison()",
    ],
}
"""Creates a trigger that makes the database refuse a row which is valid by Palestra's own rules."""
_DROP = {
    "sqlite": ["DROP TRIGGER poison"],
    "postgresql": ["DROP TRIGGER poison ON series", "DROP FUNCTION poison"],
}


@pytest.fixture
async def database_that_refuses_a_row(database: Database) -> AsyncIterator[None]:
    await _execute(database, _MAKE)
    yield
    await _execute(database, _DROP)


async def _execute(database: Database, statements: dict[str, list[str]]) -> None:
    async with database.write() as session:
        for statement in statements[database.engine.dialect.name]:
            await session.execute(text(statement))


@pytest.mark.usefixtures("database_that_refuses_a_row")
@pytest.mark.parametrize("at", [0, 7, 12])
async def test_a_record_that_only_the_database_refuses_is_named(
    live_run: AttemptWithStore, intake: Intake, at: int
) -> None:
    """Regression: every failure that depends on the content was answered 503, and retried without
    end.

    The error names the record, and nothing is stored.
    """
    content = [records.make_points(live_run.run_id, f"s{index}", [1]) for index in range(13)]
    content[at] = records.make_points(live_run.run_id, "poison", [1])
    refusal = await _send_refused(intake, live_run, *content)
    assert isinstance(refusal, InvalidError)
    assert (refusal.code, refusal.pointer) == ("unstorable_record", f"/records/{at}")
    assert (await live_run.world.run(live_run.run_id)).attempts[0].acked_seq == 0
    del content[at]
    assert await intake.take(make_delivery(live_run.attempt_id, 1, content)) == 12


@pytest.mark.usefixtures("database_that_refuses_a_row")
async def test_an_unstorable_batch_does_not_affect_the_others_of_its_group(
    live_run: AttemptWithStore, intake: Intake
) -> None:
    """The other batches of the group are committed."""
    job = await live_run.world.submit_one_job(seeds=[77])
    other = (await live_run.world.start(job.id, live_run.worker_id, slot=3)).work_order
    good = make_delivery(
        other.attempt_id, 1, [records.make_points(other.runs[0].run_id, "loss", [1])]
    )
    bad = make_delivery(
        live_run.attempt_id, 1, [records.make_points(live_run.run_id, "poison", [1])]
    )
    answers = await asyncio.gather(intake.take(bad), intake.take(good), return_exceptions=True)
    assert answers[1] == 1
    assert getattr(answers[0], "code", None) == "unstorable_record"


async def test_an_unreachable_database_is_503(
    live_run: AttemptWithStore, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary fault is answered 503, so that the worker retries and gives no record up."""

    async def raise_connection_error(*_: Any) -> int:
        raise ConnectionResetError

    with monkeypatch.context() as patch:
        patch.setattr("app.services.telemetry.batches.take_group", raise_connection_error)
        refusal = await _send_refused(
            intake, live_run, records.make_points(live_run.run_id, "loss", [1])
        )
    assert isinstance(refusal, UnavailableError)
    assert (
        await intake.take(
            make_delivery(
                live_run.attempt_id, 1, [records.make_points(live_run.run_id, "loss", [1])]
            )
        )
        == 1
    )
