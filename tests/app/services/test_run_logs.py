"""Logs of runs: complete lines are stored once, open lines are replaced by their newest text."""

import json
from typing import Any

import pytest
from sqlalchemy import select

from app.db.models import EventRow, LogBlockRow, OpenLogLinesRow
from app.services.curves import logs
from app.services.events import frames
from palestra.contract.queries import LogView
from palestra.contract.states import Cause, Outcome
from palestra.contract.telemetry import MAX_OPEN_LINE, MAX_OPEN_LINES, TelemetryBatch
from tests.app.services.telemetry_training import Training
from tests.support import records

pytestmark = pytest.mark.both_databases(
    "Each database replaces and removes rows by statements of its own.",
    of=("app.db.repositories.open_log_lines",),
)


async def read_log(training: Training, **options: Any) -> LogView:
    options = {"after": 0, "limit": 100} | options
    async with training.database.read() as session:
        return await logs.read(session, training.world.admin, training.run_id, **options)


async def read_texts(training: Training) -> tuple[list[str], list[str]]:
    """Returns the complete and the open lines of the run's log."""
    log = await read_log(training)
    return [line.text for line in log.lines], [line.text for line in log.open_lines]


async def list_events(training: Training) -> list[dict[str, Any]]:
    """Returns the data of the events of the log, as the stream sends them."""
    async with training.database.read() as session:
        stored = await session.scalars(
            select(EventRow).where(EventRow.type == "log").order_by(EventRow.id)
        )
        return [json.loads(event.json)["data"] for event in await frames.expand(session, [*stored])]


async def test_the_newest_text_replaces_an_open_line_until_it_is_complete(
    training: Training,
) -> None:
    run = training.run_id
    await training.send(1, [records.make_log(run, "begin", open_lines=["10%"])])
    assert await read_texts(training) == (["begin"], ["10%"])
    for seq, percent in enumerate(("20%", "30%"), start=2):
        await training.send(seq, [records.make_log(run, open_lines=[percent])])
    log = await read_log(training, after=1)
    assert (log.lines, log.next_after, log.complete) == ([], 1, True)
    assert [line.text for line in log.open_lines] == ["30%"]
    await training.send(4, [records.make_log(run, "epoch 1", open_lines=["40%"])])
    await training.send(5, [records.make_log(run, "100%")])
    assert await read_texts(training) == (["begin", "epoch 1", "100%"], [])
    assert [line.n for line in (await read_log(training)).lines] == [1, 2, 3]
    assert await training.count(LogBlockRow) == 3
    assert await training.count(OpenLogLinesRow) == 0


async def test_a_batch_stores_the_newest_text_of_its_records(training: Training) -> None:
    run = training.run_id
    batch = [records.make_log(run, open_lines=[f"{i}%"]) for i in range(50)]
    await training.send(1, [*batch, records.make_log(run, "one", open_lines=["a", "b"])])
    assert await read_texts(training) == (["one"], ["a", "b"])
    assert await training.count(OpenLogLinesRow) == 1
    assert len(await list_events(training)) == 1


async def test_each_stream_has_open_lines_of_its_own(training: Training) -> None:
    run = training.run_id
    await training.send(1, [records.make_log(run, open_lines=["out"])])
    await training.send(2, [records.make_log(run, open_lines=["err"], stream="stderr")])
    await training.send(3, [records.make_log(run, "palestra", stream="palestra")])
    assert await read_texts(training) == (["palestra"], ["err", "out"])
    await training.send(4, [records.make_log(run, "err\n", stream="stderr")])
    assert await read_texts(training) == (["palestra", "err\n"], ["out"])
    await training.send(5, [records.make_note(run, "hello")])
    assert (await read_texts(training))[1] == ["out"]


async def test_a_record_without_lines_removes_the_open_ones(training: Training) -> None:
    run = training.run_id
    await training.send(1, [records.make_log(run, open_lines=["50%"])])
    await training.send(2, [records.make_log(run)])
    assert await read_texts(training) == ([], [])
    await training.send(3, [records.make_log(run)])
    assert len(await list_events(training)) == 2, "the last record changed nothing"


async def test_a_repeated_batch_changes_no_open_line(training: Training) -> None:
    run = training.run_id
    first = [records.make_log(run, "begin", open_lines=["10%"])]
    second = [records.make_log(run, open_lines=["20%"]), records.make_log(run, "end")]
    await training.send(1, first)
    await training.send(2, second)
    before = await read_texts(training), len(await list_events(training))
    assert await training.send(1, first) == await training.send(1, [*first, *second]) == 3
    assert (await read_texts(training), len(await list_events(training))) == before
    assert before == ((["begin", "end"], []), 2)


async def test_events_have_the_new_lines_and_the_present_open_ones(training: Training) -> None:
    run = training.run_id
    await training.send(1, [records.make_log(run, "one")])
    await training.send(2, [records.make_log(run, open_lines=["50%"])])
    first, second = await list_events(training)
    assert [line["text"] for line in first["lines"]] == ["one"]
    assert (second["lines"], second["next_after"]) == ([], 1)
    log = json.loads((await read_log(training, after=1)).model_dump_json())
    assert second == log
    async with training.database.read() as session:
        stored = (await session.scalars(select(EventRow).where(EventRow.type == "log"))).all()
        resources = [event.resource for event in await frames.expand(session, stored)]
    assert resources[0] is None, "each complete line counts"
    assert resources[1] is not None, "of open lines the newest suffice"


async def test_pages_before_the_last_have_no_open_line(training: Training) -> None:
    await training.send(1, [records.make_log(training.run_id, "1", "2", open_lines=["50%"])])
    page = await read_log(training, limit=1)
    assert (page.complete, page.open_lines) == (False, ())
    assert (await read_log(training, after=1, limit=1)).open_lines


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.FAILED, Cause.TRAINER_KILLED),
        (Outcome.DRAINED, Cause.DRAIN),
        (Outcome.LOST, Cause.WORKER_LOST),
    ],
)
async def test_the_end_of_an_attempt_completes_its_open_lines(
    training: Training, outcome: Outcome, cause: Cause
) -> None:
    run = training.run_id
    await training.send(1, [records.make_log(run, "begin", open_lines=["outer", "50%"])])
    if outcome is Outcome.LOST:
        await training.world.register(boot_id="boot-2")
    else:
        await training.world.release(training.attempt_id, outcome, cause, last_seq=1)
    assert await read_texts(training) == (["begin", "outer", "50%"], [])
    assert [line["text"] for line in (await list_events(training))[-1]["lines"]] == ["outer", "50%"]


async def test_a_bar_after_a_resume_leaves_the_line_of_the_attempt_before(
    training: Training,
) -> None:
    await training.send(1, [records.make_log(training.run_id, open_lines=["50%"])])
    await training.world.release(training.attempt_id, Outcome.DRAINED, Cause.DRAIN, last_seq=1)
    claimed = await training.world.start(training.job_id, training.worker_id, attempt=2)
    attempt_id = claimed.work_order.attempt_id
    await training.send(
        1, [records.make_log(training.run_id, open_lines=["60%"])], attempt_id=attempt_id
    )
    log = await read_log(training)
    assert [line.text for line in log.lines] == ["50%"]
    assert [(line.attempt_id, line.text) for line in log.open_lines] == [(attempt_id, "60%")]


async def test_open_lines_do_not_count_towards_the_limit_of_a_log(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.telemetry.run_logs.MAX_LOG_BYTES", 20)
    run = training.run_id
    for seq in range(1, 20):
        await training.send(seq, [records.make_log(run, open_lines=[f"{seq} of 20"])])
    await training.send(20, [records.make_log(run, "20 of 20")])
    assert await read_texts(training) == (["20 of 20"], [])
    await training.send(21, [records.make_log(run, "a line that is too long")])
    await training.send(22, [records.make_log(run, open_lines=["50%"])])
    lines, open_lines = await read_texts(training)
    assert (len(lines), open_lines) == (2, []), "a full log has no open lines"
    assert lines[1].startswith("log_full")


@pytest.mark.parametrize("open_lines", [["x" * (MAX_OPEN_LINE + 1)], ["x"] * (MAX_OPEN_LINES + 1)])
def test_open_lines_are_bounded(open_lines: list[str]) -> None:
    record = records.make_log("run_" + "0" * 26, open_lines=open_lines)
    with pytest.raises(ValueError, match="open_lines"):
        TelemetryBatch.model_validate({"first_seq": 1, "records": [record]}, strict=False)
