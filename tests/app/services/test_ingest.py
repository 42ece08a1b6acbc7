"""Ingest of telemetry: every record is stored exactly once and in order, on both databases."""

import json
import math
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from app.db.engine import Database
from app.db.models import (
    EpochStatsRow,
    EvaluationRow,
    EventRow,
    LogBlockRow,
    RunRow,
    TelemetryBatchRow,
)
from app.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
)
from app.services.events import frames
from palestra.contract.states import Cause, Outcome
from tests.app.services.telemetry_training import Training, get_acked_seq
from tests.support import records
from tests.support.server_fixture import World
from tests.support.stored_points import read_columns

pytestmark = pytest.mark.both_databases(
    "Each database combines the statements of a batch in its own way and stores other types.",
    of=(
        "app.db.prepared",
        "app.db.repositories.telemetry",
        "app.db.repositories.writers",
    ),
)


async def test_every_kind_of_record_is_stored_in_its_table(training: Training) -> None:
    run = training.run_id
    acked = await training.send(
        1,
        [
            records.make_points(run, "loss", [10, 20], [1.5, "NaN"]),
            records.make_episodes(run, [1, 2]),
            records.make_evaluation(run, 20, 12.5),
            records.make_stats(run, 30),
            records.make_log(run, "one", "two"),
            records.make_system_record(run, cpu=0.5, memory=3.0),
            records.make_note(run, "hello"),
        ],
    )
    assert acked == 7
    assert (await training.read_values("loss"))[0] == 1.5
    assert math.isnan((await training.read_values("loss"))[1])
    assert await training.read_values("episode/return") == [1.0, 2.0]
    assert await training.read_values("episode/length") == [10.0, 10.0]
    assert await training.read_values("system/cpu") == [0.5]
    assert [
        await training.count(model)
        for model in (EvaluationRow, EpochStatsRow, LogBlockRow, TelemetryBatchRow)
    ] == [1, 1, 1, 1]
    view = await training.world.run(run)
    assert (view.progress.env_step, view.progress.episode) == (30, 2)
    assert view.latest_evaluation is not None
    assert view.latest_evaluation.mean == 12.5
    assert view.attempts[0].acked_seq == 7
    async with training.database.read() as session:
        kinds = [
            event.type
            for event in await session.scalars(
                select(EventRow).where(EventRow.run_id == run).order_by(EventRow.id)
            )
        ]
    assert kinds[-4:] == ["points", "log", "evaluation", "stats"]


async def test_repeats_and_overlaps_change_nothing(training: Training) -> None:
    content = [records.make_points(training.run_id, "loss", [step]) for step in range(1, 6)]
    assert await training.send(1, content[:3]) == 3
    assert await training.send(1, content[:3]) == 3
    assert await training.send(2, content[1:5]) == 5
    assert await training.send(3, content[2:4]) == 5
    assert await training.read_values("loss") == [1.0, 2.0, 3.0, 4.0, 5.0]


async def test_a_gap_is_refused_with_the_expected_sequence_number(training: Training) -> None:
    await training.send(1, [records.make_points(training.run_id, "loss", [1])])
    refusal = await training.send_refused(3, [records.make_points(training.run_id, "loss", [3])])
    assert isinstance(refusal, ConflictError)
    assert (refusal.code, refusal.extra) == ("seq_gap", {"expected_seq": 2})


async def test_other_content_with_a_used_sequence_number_is_a_conflict(training: Training) -> None:
    await training.send(
        1,
        [
            records.make_points(training.run_id, "loss", [1]),
            records.make_points(training.run_id, "loss", [2]),
        ],
    )
    other = [
        records.make_points(training.run_id, "loss", [2], [2.5]),
        records.make_points(training.run_id, "loss", [3]),
    ]
    assert (await training.send_refused(2, other)).code == "seq_conflict"
    assert await training.read_values("loss") == [1.0, 2.0]


async def test_a_batch_with_a_run_of_another_attempt_is_refused_as_a_whole(
    training: Training,
) -> None:
    foreign = "run_" + "0" * 26
    refusal = await training.send_refused(
        1,
        [
            records.make_points(training.run_id, "loss", [1]),
            records.make_points(foreign, "loss", [1]),
        ],
    )
    assert isinstance(refusal, ForbiddenError)
    assert await training.read_values("loss") == []


async def test_an_ended_attempt_may_not_write(training: Training) -> None:
    await training.world.release(training.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    assert (
        await training.send_refused(1, [records.make_log(training.run_id, "late")])
    ).code == "stale_attempt"


async def test_an_older_attempt_may_not_write_over_a_newer_one(training: Training) -> None:
    await training.send(1, [records.make_points(training.run_id, "loss", [1])])
    await training.world.send_heartbeat(training.worker_id, dead=[training.attempt_id])
    newer = await training.world.start(training.job_id, training.worker_id, attempt=2, slot=1)
    assert (
        await training.send_refused(2, [records.make_points(training.run_id, "loss", [2])])
    ).code == "stale_attempt"
    new_id = newer.work_order.attempt_id
    assert (
        await training.send(
            1, [records.make_points(training.run_id, "loss", [7])], attempt_id=new_id
        )
        == 1
    )
    assert await training.read_values("loss") == [1.0, 7.0]


async def test_names_below_evaluation_are_reserved(training: Training) -> None:
    refusal = await training.send_refused(
        1, [records.make_points(training.run_id, "evaluation/mean", [1])]
    )
    assert (refusal.code, refusal.pointer) == ("reserved_series", "/records/0")


async def test_too_many_series_refuse_the_whole_batch(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.telemetry.record_rows.MAX_SERIES_PER_RUN", 3)
    await training.send(1, [records.make_points(training.run_id, name, [1]) for name in "abc"])
    refusal = await training.send_refused(
        4,
        [
            records.make_points(training.run_id, "a", [2]),
            records.make_points(training.run_id, "d", [2]),
        ],
    )
    assert isinstance(refusal, InvalidError)
    assert refusal.code == "too_many_metrics"
    assert await training.read_values("a") == [1.0]
    assert await training.send(4, [records.make_points(training.run_id, "a", [2])]) == 4


async def test_the_curves_of_the_runs_of_a_pack_are_separate(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await world.register(slots=2)
    job = await world.submit_one_job(seeds=(0, 1, 2), resources={"pack": 3})
    order = (await world.start(job.id, worker.worker_id)).work_order
    first, second, third = job.run_ids
    pack = Training(world, database, first, job.id, worker.worker_id, order.attempt_id)
    await pack.send(
        1,
        [
            records.make_points(run, "x", [1], [value])
            for run, value in ((first, 1), (third, 3), (second, 2))
        ],
    )
    await pack.send(
        4,
        [
            records.make_points(second, "x", [2], [20]),
            records.make_points(first, "y", [2], [10]),
            records.make_points(first, "x", [2], [11]),
        ],
    )
    stored = {
        (run, name): await pack.read_values(name, run_id=run)
        for run in job.run_ids
        for name in "xy"
    }
    assert stored == {
        (first, "x"): [1, 11],
        (first, "y"): [10],
        (second, "x"): [2, 20],
        (second, "y"): [],
        (third, "x"): [3],
        (third, "y"): [],
    }
    async with database.read() as session:
        found = select(EventRow).where(EventRow.type == "points").order_by(EventRow.id)
        events = await frames.expand(session, (await session.scalars(found)).all())
    views = [json.loads(event.frame.partition(b"data: ")[2])["data"]["series"] for event in events]
    values = [{one["name"]: one["value"] for one in series} for series in views]
    assert [event.key.run_id for event in events[:3]] == [first, third, second]
    assert values[:3] == [{"x": [1]}, {"x": [3]}, {"x": [2]}]
    later = {event.key.run_id: value for event, value in zip(events[3:], values[3:], strict=True)}
    assert later == {first: {"x": [11], "y": [10]}, second: {"x": [20]}}
    monkeypatch.setattr("app.services.telemetry.record_rows.MAX_SERIES_PER_RUN", 2)
    refusal = await pack.send_refused(
        7, [records.make_points(third, "x", [9]), records.make_points(first, "z", [9])]
    )
    assert refusal.code == "too_many_metrics"
    assert await pack.read_values("x", run_id=third) == [3]


async def test_points_with_the_name_of_an_episode_curve_lie_beside_the_episodes(
    training: Training,
) -> None:
    run = training.run_id
    await training.send(
        1,
        [
            records.make_points(run, "episode/length", [1], [7]),
            records.make_episodes(run, [1, 2]),
            records.make_points(run, "episode/length", [3]),
        ],
    )
    async with training.database.read() as session:
        (columns,) = await read_columns(session, run, "episode/length")
    assert columns.value[0] == 7
    assert columns.extra["env_index"].tolist()[0] == columns.extra["terminated"].tolist()[-1] == -1
    assert -1 not in columns.extra["env_index"].tolist()[1:-1]


async def test_more_series_than_sql_parameters_are_refused(
    training: Training,
) -> None:
    names = [f"s{index}" for index in range(35_000)]
    wide = [
        records.make_system_record(training.run_id, **dict.fromkeys(names[begin : begin + 64], 1.0))
        for begin in range(0, len(names), 64)
    ]
    assert (await training.send_refused(1, wide)).code == "too_many_metrics"
    assert await training.send(1, [records.make_points(training.run_id, "a", [2])]) == 1


@pytest.mark.parametrize(
    "value", [-0.0, 5e-324, 1.7976931348623157e308, "NaN", "Infinity", "-Infinity"]
)
async def test_special_numbers_are_stored_exactly(training: Training, value: Any) -> None:
    await training.send(
        1,
        [
            records.make_points(training.run_id, "loss", [1], [value]),
            records.make_evaluation(training.run_id, 1, value),
        ],
    )
    expected = float(value)
    (stored,) = await training.read_values("loss")
    assert repr(stored) == repr(expected)
    latest = (await training.world.run(training.run_id)).latest_evaluation
    assert latest is not None
    assert repr(latest.mean) == repr(expected)


async def test_a_log_at_its_size_limit_ends_with_one_notice(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.telemetry.run_logs.MAX_LOG_BYTES", 20)
    for seq in range(1, 6):
        await training.send(seq, [records.make_log(training.run_id, f"line {seq}")])
    async with training.database.read() as session:
        ends = [
            block.last_line
            for block in await session.scalars(select(LogBlockRow).order_by(LogBlockRow.first_line))
        ]
    assert ends == [1, 2, 3]


async def test_the_speed_of_a_run_follows_its_batches(training: Training) -> None:
    for seq in range(1, 4):
        await training.send(seq, [records.make_points(training.run_id, "loss", [seq * 100])])
    async with training.database.read() as session:
        run = (await session.scalars(select(RunRow).where(RunRow.id == training.run_id))).one()
    assert run.env_steps_per_second is not None
    assert run.env_steps_per_second > 0


def _draw_overlapping_batches(size: int, chooser: random.Random) -> list[tuple[int, int]]:
    """Returns batches that cover records 1 to `size`, with repeats, overlaps and gaps, in any
    order.
    """
    cuts = [(first, min(size, first + chooser.randint(0, 4))) for first in range(1, size + 1)]
    wild = [chooser.choice(cuts) for _ in range(size)]
    return wild + cuts


@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(seed=st.integers(0, 2**32 - 1))
async def test_any_order_of_deliveries_equals_one_delivery_in_order(
    training: Training, seed: int
) -> None:
    chooser = random.Random(seed)
    base = await get_acked_seq(training)
    content = [
        records.make_points(
            training.run_id, f"s{seed}/{chooser.randint(0, 2)}", [i], [chooser.random()]
        )
        for i in range(1, 13)
    ]
    for first, last in _draw_overlapping_batches(len(content), chooser):
        try:
            await training.send(base + first, content[first - 1 : last])
        except ConflictError as refusal:
            assert refusal.code == "seq_gap"  # noqa: PT017 - the refusal is expected now and then
    for name in {record["series"] for record in content}:
        assert await training.read_values(name) == [
            record["value"][0] for record in content if record["series"] == name
        ]
    assert await get_acked_seq(training) == base + len(content)
