"""Curves over times: positions in milliseconds, and relative times moved by whole buckets."""

import json
from typing import Any

import pytest

from app.services.curves import curves
from palestra.contract.queries import SeriesQuery, SeriesResult
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.records import Json

pytestmark = pytest.mark.both_databases(
    "Lists of curves and of blocks are parameters of other types on each database.",
    of=("app.db.list_parameters",),
)


WALL = 1_700_000_000.0


def make_timed_points(run: str, walls: list[float]) -> Json:
    steps = list(range(1, len(walls) + 1))
    return {**records.make_points(run, "loss", steps), "wall": walls}


async def query(live_run: AttemptWithStore, *series: str, **changes: Any) -> SeriesResult:
    select = [{"run_id": live_run.run_id, "series": name} for name in series]
    body = json.dumps({"select": select, **changes})
    return await curves.query(
        live_run.database, live_run.world.admin, SeriesQuery.model_validate_json(body)
    )


async def test_wall_time_has_buckets_of_milliseconds(live_run: AttemptWithStore) -> None:
    await live_run.send(make_timed_points(live_run.run_id, [WALL, WALL + 0.0004, WALL + 0.003]))
    answer = await query(live_run, "loss", x="wall")
    assert (answer.width, answer.start, answer.end) == (0.001, WALL, WALL + 0.004)
    assert answer.series[0].n == [2, 0, 0, 1]
    assert answer.grid == [WALL, WALL + 0.001, WALL + 0.002, WALL + 0.003]


async def test_relative_time_begins_at_the_first_point_of_the_run(
    live_run: AttemptWithStore,
) -> None:
    await live_run.send(make_timed_points(live_run.run_id, [WALL + 0.005, WALL + 0.007]))
    await live_run.send(
        records.make_evaluation(live_run.run_id, 5, 3.0) | {"wall": WALL + 0.010},
        records.make_points(live_run.run_id, "entropy", [1]) | {"wall": [WALL + 0.006]},
    )
    answer = await query(live_run, "loss", "entropy", "evaluation/mean", x="relative")
    assert (answer.start, answer.width, answer.end) == (0.0, 0.001, 0.006)
    assert [[i for i, n in enumerate(one.n) if n] for one in answer.series] == [[0, 2], [1], [5]]


async def test_wide_buckets_of_relative_time_are_those_of_wall_time(
    live_run: AttemptWithStore,
) -> None:
    await live_run.send(
        make_timed_points(live_run.run_id, [WALL + 0.001 * step for step in range(5, 205)])
    )
    wall = await query(live_run, "loss", x="wall", buckets=8)
    relative = await query(live_run, "loss", x="relative", buckets=8)
    assert wall.width == relative.width == 0.032
    assert wall.series[0].n == relative.series[0].n
    assert relative.start == 0.0


async def test_a_range_and_a_zoom_state_where_their_buckets_begin(
    live_run: AttemptWithStore,
) -> None:
    await live_run.send(records.make_points(live_run.run_id, "loss", range(10_000)))
    full = await query(live_run, "loss", buckets=1_000)
    assert (full.width, len(full.grid), full.series[0].points) == (16, 625, 10_000)
    zoomed = await query(live_run, "loss", start=4_001, end=7_999, buckets=1_000)
    assert (zoomed.start, zoomed.width, zoomed.end) == (4_000, 4, 8_000)
    assert zoomed.series[0].points == 4_000
    assert zoomed.series[0].mean[0] == 4_001.5
