"""Pages that are merged from many setups equal the sort of all rows."""

import random
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio

from app.db.clock import db_now
from app.db.models.experiments import RunRow
from app.db.models.summaries import SeriesNameRow, SeriesSummaryRow
from app.db.repositories import partition_walk
from app.db.repositories.list_sorting import PageEnd
from app.db.repositories.partition_walk import Walk
from tests.app.services.test_list_filters import list_runs
from tests.support.server_fixture import World, make_definition

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.both_databases(
        "The parts of a walk are one statement each on SQLite, and a lateral join on PostgreSQL.",
        of=("app.db.repositories.partition_walk",),
    ),
]


SETUPS = (3, 5, 8, 9, 12)
NAME = 7


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def rows(module_world: World) -> list[tuple[float | None, str, int, int]]:
    """Value, run, setup and seed of each of 240 summaries: most high values are of one setup."""
    world = module_world
    await world.submit(make_definition(), seeds=list(range(240)))
    chooser = random.Random(3)
    found = []
    for run in await list_runs(world):
        setup = chooser.choice(SETUPS)
        value = float(chooser.randrange(12) + (9 if setup == 5 else 0))
        found.append((None if chooser.random() < 0.1 else value, run.id, setup, run.seed))
    async with world.database.write() as session:
        session.add(SeriesNameRow(id=NAME, name="a/b"))
        session.add_all(
            SeriesSummaryRow(
                run_id=run_id, name_id=NAME, setup_id=setup, points=1, nonfinite=0, best=value,
                recent="[]",
            )
            for value, run_id, setup, _ in found
        )  # fmt: skip
    return found


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("is_limited", [False, True])
@pytest.mark.parametrize(("setups", "most"), [(SETUPS, 50), (SETUPS, 9), ((5,), 20), ((9, 4), 30)])
async def test_pages_follow_each_other_as_in_a_sort_of_all(
    module_world: World,
    rows: list[tuple[float | None, str, int, int]],
    setups: tuple[int, ...],
    most: int,
    *,
    is_descending: bool,
    is_limited: bool,
) -> None:
    conditions: list[Any] = []
    if is_limited:
        conditions = [RunRow.seed.in_(range(0, 240, 3)), RunRow.created_at < db_now(1.0)]
    expected = sorted(
        (
            (value, run_id)
            for value, run_id, setup, seed in rows
            if value is not None and setup in setups and (seed % 3 == 0 or not is_limited)
        ),
        reverse=is_descending,
    )
    found: list[tuple[float, str]] = []
    after: PageEnd | None = None
    while after is None or found[-1:] == [(after.value, after.id)]:
        walk = Walk("best", NAME, conditions, is_descending, after, most)
        async with module_world.database.read() as session:
            page = await partition_walk.list_first(session, walk, setups)
        if not page:
            break
        found += [(row.value, row.run_id) for row in page]
        after = PageEnd(*found[-1])
    assert len(expected) > 8
    assert found == expected
    assert all(first != second for first, second in pairwise(found))
