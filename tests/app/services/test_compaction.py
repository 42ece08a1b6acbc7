"""Compaction keeps every point: what is read equals what was sent, before, between and after."""

import random
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.daemons.curve_compactor import CurveCompactor
from app.db.engine import Database, Session
from app.db.models import AttemptRow, BlockRow, RollupRow, TailRow, TelemetryBatchRow
from app.db.repositories import blocks as block_rows
from app.db.repositories import compaction as compaction_rows
from app.db.repositories.blocks import RunBatch
from app.metrics import blocks, compaction, pyramid
from app.metrics.columns import Columns
from app.metrics.fence_chain import Position
from app.metrics.grid import Grid, downsample
from app.services.curves import stored_curves
from app.services.events.batch_points import read_batch
from app.services.telemetry import compaction as service
from palestra.contract.states import Cause, Outcome
from tests.app.services.telemetry_training import Training
from tests.support import records
from tests.support.stored_points import read_columns

both_databases = pytest.mark.both_databases(
    "Rows of a run are locked on PostgreSQL while its points are moved.",
    of=("app.db.repositories.telemetry",),
)

SPECIAL = (-0.0, 5e-324, float(2**53 - 1), float("inf"), float("-inf"), 0.1)


async def get_acked_seq(training: Training) -> int:
    async with training.database.read() as session:
        query = select(AttemptRow.acked_seq).where(AttemptRow.id == training.attempt_id)
        return (await session.scalars(query)).one()


async def count(database: Database, model: Any) -> int:
    async with database.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


async def read_bits(training: Training, name: str) -> bytes:
    """Returns the values of a series, bit by bit."""
    async with training.database.read() as session:
        found = await read_columns(session, training.run_id, name)
    return b"".join(columns.value.tobytes() for columns in found)


async def test_points_move_to_blocks_and_read_the_same(training: Training) -> None:
    sent: list[float] = []
    for batch in range(70):
        values = [float(batch), "NaN" if batch % 9 == 0 else SPECIAL[batch % len(SPECIAL)]]
        values = [
            {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(one, one) for one in values
        ]
        sent += [float(one) for one in values]
        await training.send(
            batch + 1,
            [records.make_points(training.run_id, "loss", [70 - batch, 70 - batch], values)],
        )
        if batch in {3, 40}:
            assert await service.compact_tail(training.database, training.run_id) > 0
            assert await count(training.database, TailRow) == 0
    expected = b"".join(struct.pack("<d", value) for value in sent)
    assert await read_bits(training, "loss") == expected
    assert await service.compact_tail(training.database, training.run_id) == 29
    assert await read_bits(training, "loss") == expected
    assert await service.compact_tail(training.database, training.run_id) == 0
    assert await service.rewrite_blocks(training.database, training.run_id) > 0
    assert await read_bits(training, "loss") == expected
    assert await count(training.database, BlockRow) == 1


@both_databases
async def test_an_interrupted_compaction_changes_nothing(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    await training.send(1, [records.make_points(training.run_id, "loss", [1, 2])])
    replace = compaction_rows.replace

    async def fail(*arguments: Any) -> None:
        await replace(*arguments)
        raise RuntimeError("killed")

    monkeypatch.setattr(compaction_rows, "replace", fail)
    with pytest.raises(RuntimeError, match="killed"):
        await service.compact_tail(training.database, training.run_id)
    assert await count(training.database, BlockRow) == 0
    assert await training.read_values("loss") == [1.0, 2.0]


@both_databases
async def test_two_compactions_of_the_same_points_store_them_once(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    await training.send(1, [records.make_points(training.run_id, "loss", [1, 2])])
    replace = compaction_rows.replace

    async def replace_after_another(*arguments: Any) -> None:
        monkeypatch.setattr(compaction_rows, "replace", replace)
        raise compaction_rows.OutdatedError

    monkeypatch.setattr(compaction_rows, "replace", replace_after_another)
    assert await service.compact_tail(training.database, training.run_id) == 0
    assert await service.compact_tail(training.database, training.run_id) == 1
    assert await training.read_values("loss") == [1.0, 2.0]


async def test_a_batch_is_found_for_its_event_before_and_after_compaction(
    training: Training,
) -> None:
    run = training.run_id
    await training.send(1, [records.make_points(run, "loss", [1, 2])])
    await training.send(2, [records.make_points(run, "loss", [3]), records.make_log(run, "line")])
    await training.send(4, [records.make_points(run, "loss", [4])])
    wanted = RunBatch(run, training.attempt_id, 2, 3)
    for _ in range(2):
        async with training.database.read() as session:
            stored = await block_rows.load_batches(session, [wanted])
        found = read_batch(wanted, stored[wanted])
        assert found.series["loss"].env_step.tolist() == [3]
        assert found.fence == 1
        await service.compact_tail(training.database, run)
    assert await count(training.database, TailRow) == 0


async def test_the_compactor_finishes_the_curves_of_an_ended_attempt(training: Training) -> None:
    database = training.database
    compactor = CurveCompactor(database)
    for batch in range(10):
        await training.send(batch + 1, [records.make_points(training.run_id, "loss", [batch])])
        await compactor.tick(batches=1)
    assert await count(database, BlockRow) > 1
    assert await count(database, TelemetryBatchRow) == 10
    await training.world.release(training.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=10)
    await CurveCompactor(database).tick()
    assert await count(database, BlockRow) == 1
    assert await count(database, TelemetryBatchRow) == 0
    assert await training.read_values("loss") == [float(batch) for batch in range(10)]


async def test_large_blocks_have_rollups_which_go_with_them(training: Training) -> None:
    steps = list(range(9_000))
    for batch in range(2):
        await training.send(batch + 1, [records.make_points(training.run_id, "loss", steps)])
        await service.compact_tail(training.database, training.run_id)
    rollups = await count(training.database, RollupRow)
    assert rollups > 8
    await service.rewrite_blocks(training.database, training.run_id)
    assert await count(training.database, BlockRow) == 1
    assert 0 < await count(training.database, RollupRow) < rollups


async def test_short_blocks_have_rollups_only_while_points_follow(training: Training) -> None:
    steps = list(range(pyramid.LEAST_LIVE_POINTS))
    await training.send(1, [records.make_points(training.run_id, "loss", steps)])
    await service.compact_tail(training.database, training.run_id)
    assert await count(training.database, RollupRow) > 0
    assert await service.rewrite_blocks(training.database, training.run_id) == 1
    assert await count(training.database, RollupRow) == 0
    assert await training.read_values("loss") == [float(step) for step in steps]
    assert await service.rewrite_blocks(training.database, training.run_id) == 0


async def test_the_compactor_takes_long_and_old_tails_only(training: Training) -> None:
    await training.send(1, [records.make_points(training.run_id, "loss", [1])])
    compactor = CurveCompactor(training.database)
    assert await compactor.tick(batches=2, seconds=100) == 0
    assert await compactor.tick(batches=2, seconds=-1) == 1


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_POINTS", 32)
    monkeypatch.setattr(pyramid, "LEAST_POINTS", 4)
    monkeypatch.setattr(pyramid, "LEAST_LIVE_POINTS", 2)
    monkeypatch.setattr(pyramid, "_POINTS_PER_CELL", 1)
    monkeypatch.setattr(compaction, "COMPLETE", 16)
    monkeypatch.setattr(compaction, "FAN_IN", 3)


def make_record(run: str, name: str, steps: list[int], values: list[float]) -> records.Json:
    return {**records.make_points(run, name, steps, values), "wall": [step % 1e9 for step in steps]}


@pytest.mark.usefixtures("small_blocks")
@settings(
    max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    seed=st.integers(0, 2**32 - 1),
    plan=st.lists(st.sampled_from(("send", "send", "repeat", "compact", "rewrite")), max_size=25),
)
async def test_any_sequence_of_batches_and_compactions_reads_as_the_list(
    training: Training, seed: int, plan: list[str]
) -> None:
    chooser = random.Random(seed)
    base = seq = await get_acked_seq(training)
    expected: dict[str, list[tuple[int, float]]] = {}
    latest: tuple[int, list[records.Json]] | None = None
    for action in plan:
        if action == "send":
            points = [
                (
                    chooser.choice((chooser.randrange(9), chooser.randrange(99), 2**53 - 1)),
                    chooser.choice((-0.0, 5e-324, 2.0**53 - 1, chooser.uniform(-1, 1))),
                )
                for _ in range(chooser.randint(1, 9))
            ]
            names = chooser.sample((f"a{base}", f"b{base}", f"c{base}"), chooser.randint(1, 3))
            at, values = [x for x, _ in points], [value for _, value in points]
            content = [make_record(training.run_id, one, at, values) for one in names]
            await training.send(seq + 1, content)
            latest = (seq + 1, content)
            seq += len(content)
            for name in names:
                expected.setdefault(name, []).extend(points)
        elif action == "repeat" and latest is not None:
            await training.send(*latest)
        elif action == "compact":
            await service.compact_tail(training.database, training.run_id)
        elif action == "rewrite":
            await service.rewrite_blocks(training.database, training.run_id)
    async with training.database.read() as session:
        for name, points in expected.items():
            found = blocks.concatenate(await read_columns(session, training.run_id, name))
            assert found.env_step.tolist() == [x for x, _ in points]
            bits = np.array([value for _, value in points], np.float64).tobytes()
            assert found.value.tobytes() == bits
            for axis in pyramid.AXES:
                for history in ({}, {1: Position(chooser.randrange(9), 0)}):
                    await check_grids(session, (training.run_id, name), axis, history, found)


async def check_grids(
    session: Session,
    key: tuple[str, str],
    axis: str,
    history: dict[int, Position | None],
    points: Columns,
) -> None:
    """Asserts that a curve on grids of all widths equals what its list of points gives."""
    bound = history.get(1)
    if bound is not None:
        before = points.env_step < bound.env_step
        at = (points.env_step == bound.env_step) & (points.update <= bound.update)
        points = blocks.select(points, before | at)
    positions = pyramid.find_positions(points, axis)
    curve = (await stored_curves.load(session, [key], axis, {key[0]: history}))[key]
    if not len(points):
        assert curve.span is None
        return
    low, high = int(positions.min()), int(positions.max())
    span = curve.span
    assert span == (low, high)
    level = 0
    while high >> level != low >> level:
        level += 1
    for width in range(max(0, level - 8), level + 2):
        keys = (high >> width) - (low >> width) + 1
        for first, count in ((low >> width, keys), ((low >> width) + keys // 2, 2)):
            curve = (await stored_curves.load(session, [key], axis, {key[0]: history}))[key]
            await stored_curves.load_cells(session, [curve], width, [(first, count)])
            cells = stored_curves.reduce([curve], width, [first], count)
            expected = downsample(positions, points.value, Grid(first, 1 << width, count))
            assert cells.n.tolist() == expected.n.tolist()
            assert cells.nonfinite.tolist() == expected.nonfinite.tolist()
            assert np.array_equal(cells.low, expected.min, equal_nan=True)
            assert np.array_equal(cells.high, expected.max, equal_nan=True)
            assert np.array_equal(cells.last, expected.last, equal_nan=True)
            assert np.allclose(cells.mean, expected.mean, 1e-9, 1e-9, equal_nan=True)
