"""Any sequence of batches reads as the list of its points: queries on every axis, and exports."""

import json
import random
import struct

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.metrics import blocks, compaction, pyramid
from app.services.curves import curves, record_exports, stored_points
from app.services.curves.record_exports import RunningExports
from palestra.contract.queries import SeriesQuery
from palestra.contract.record_exports import RecordQuery
from palestra.contract.states import Cause, Outcome
from tests.app.services.curve_history import (
    NAMES,
    CurveHistory,
    Sent,
    check_answer,
    find_position,
    iterate_ranges,
)
from tests.support.artifact_store import AttemptWithStore

ACTIONS = (
    *("send", "send", "send", "repeat", "reorder", "crash", "compact", "compact", "rewrite"),
    *("crash_compaction", "snapshot", "resume"),
)
AXES = ("env_step", "update", "episode", "wall", "relative")
BUCKETS = (3, 9, 40, 1_500)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few points with pyramids, and pages of few points."""
    monkeypatch.setattr(blocks, "MAX_POINTS", 32)
    monkeypatch.setattr(pyramid, "LEAST_POINTS", 4)
    monkeypatch.setattr(pyramid, "LEAST_LIVE_POINTS", 2)
    monkeypatch.setattr(pyramid, "_POINTS_PER_CELL", 1)
    monkeypatch.setattr(compaction, "COMPLETE", 16)
    monkeypatch.setattr(compaction, "FAN_IN", 3)
    monkeypatch.setattr(stored_points, "PAGE_POINTS", 24)
    monkeypatch.setattr(record_exports, "_PIECE_ROWS", {"csv": 16, "arrow": 16})


@pytest.mark.usefixtures("small_blocks")
@settings(
    max_examples=6,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes many minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(seed=st.integers(0, 2**32 - 1), plan=st.lists(st.sampled_from(ACTIONS), max_size=25))
async def test_any_history_of_a_run_reads_as_its_list_of_points(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch, seed: int, plan: list[str]
) -> None:
    run = await start_another(live_run)
    history = CurveHistory(run, random.Random(seed), monkeypatch)
    for action in plan:
        await history.act(action)
    for superseded in (False, True):
        expected = {name: history.list_points(name, superseded=superseded) for name in NAMES}
        await check_export(history, expected, superseded=superseded)
        for axis in AXES:
            await check_queries(history, expected, axis, superseded=superseded)
    await run.world.release(run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=run.seq)


async def start_another(live_run: AttemptWithStore) -> AttemptWithStore:
    """Returns a new run of the worker, on slots that the fixture's run does not hold."""
    world = live_run.world
    job = await world.submit_one_job(seeds=(len(await world.list_jobs()),))
    order = (await world.start(job.id, live_run.worker_id, slot=1)).work_order
    return AttemptWithStore(
        world, live_run.database, live_run.store, live_run.directory,
        order.runs[0].run_id, job.id, live_run.worker_id, order.attempt_id,
    )  # fmt: skip


async def check_queries(
    history: CurveHistory, expected: dict[str, list[Sent]], axis: str, *, superseded: bool
) -> None:
    """Asserts that curves on grids of several widths are those of the expected points."""
    origin = find_origin(history) if axis == "relative" else 0
    scale = 1_000 if axis in {"wall", "relative"} else 1
    points = [point for some in expected.values() for point in some]
    for low, high in iterate_ranges(points, axis):
        for buckets in BUCKETS:
            body = {
                "runs": [history.run.run_id],
                "names": list(NAMES),
                "x": axis,
                "start": None if low is None else (low - origin) / scale,
                "end": None if high is None else (high - origin) / scale,
                "buckets": buckets,
                "include_superseded": superseded,
            }
            answer = await curves.query(
                history.run.database,
                history.run.world.admin,
                SeriesQuery.model_validate_json(json.dumps(body)),
            )
            check_answer(answer, expected, origin)
            if low is None:
                totals = [sum(one.n) for one in answer.series]
                assert totals == [len(expected[one.series]) for one in answer.series]


async def check_export(
    history: CurveHistory, expected: dict[str, list[Sent]], *, superseded: bool
) -> None:
    """Asserts that an export has exactly the expected points, in their order, bit by bit."""
    found = await record_exports.export(
        history.run.database,
        history.run.world.admin,
        RecordQuery(runs=(history.run.run_id,), superseded=superseded),
        "arrow",
        RunningExports(),
    )
    content = b"".join([piece async for piece in found.read()])
    await found.close()
    rows = pa.ipc.open_stream(content).read_all().to_pylist()
    origin = find_origin(history)
    wanted = [point for name in sorted(NAMES) for point in expected[name]]
    assert len(rows) == len(wanted)
    for row, point in zip(rows, wanted, strict=True):
        assert Sent(*(row[name] for name in ("fence", "series", *AXES[:4])), 0.0) == (
            point._replace(value=0.0)
        )
        assert struct.pack("<d", row["value"]) == struct.pack("<d", point.value)
        assert row["relative"] == (find_position(point, "wall") - origin) / 1_000
        counts = history.counts(point.fence, (point.env_step, point.update))
        assert row["superseded"] is not counts


def find_origin(history: CurveHistory) -> int:
    """Returns the time at 0 of the relative time in milliseconds."""
    return min((find_position(point, "wall") for point in history.points), default=0)
