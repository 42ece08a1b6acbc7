"""Groups of runs equal those that numpy makes of the runs that the list returns."""

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from app.daemons.summariser import Summariser
from app.db.repositories import run_lists
from app.domain.errors import InvalidError
from app.domain.list_filters import RunFilter
from app.domain.paging import PageRequest
from app.metrics.grouped_values import GroupMean, compute_group_mean
from app.services.lists import run_groups, run_keys
from palestra.contract.resources import RunView
from palestra.contract.run_lists import RunGroupView
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.run_pages import read_page
from tests.support.server_fixture import World, make_definition
from tests.support.training import make_evaluations, train

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCORES = {
    ("dqn", 0.99): ((1.0, 5.0), (7.0, 3.0), ()),
    ("dqn", 0.5): ((4.0, 4.5),),
    ("ppo", 0.99): ((2.0,), (9.0, 8.0)),
}
METRIC = "evaluation/mean.last"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def grouped(module_world: World) -> World:
    """Runs of two agents and two discounts, one of them without an evaluation."""
    world = module_world
    worker = (await world.register(slots=8)).worker_id
    slots = itertools.count()
    for (agent, gamma), scores in SCORES.items():
        document = make_definition(
            name=f"{agent} “{gamma}”, x", agent={"name": agent, "gamma": gamma}
        )
        experiment, _ = await world.submit(document, seeds=[*range(len(scores))])
        for job in await world.list_jobs(experiment_id=experiment.id):
            seed = (await world.run(job.run_ids[0])).seed
            end = (Outcome.SUCCEEDED, Cause.BUDGET) if seed == 0 else None
            content = [
                *make_evaluations(*scores[seed]),
                records.make_points("", "loss/td", [1], [0.5]),
            ]
            await train(world, job, (worker, next(slots)), content, end)
    await Summariser(world.database).tick()
    return world


async def list_groups(
    world: World, *by: str, limit: int = 100, sort: str = "-mean", **wanted: Any
) -> list[RunGroupView]:
    """Returns the groups of all pages."""
    found: list[RunGroupView] = []
    chosen = {"filter": "", "user": None, "metric": METRIC, **wanted}
    cursor: str | None = None
    while True:
        async with world.database.read() as session:
            page = await run_groups.list_groups(
                session,
                world.admin,
                run_groups.WantedGroups(by=by, **chosen),
                PageRequest(sort=sort, limit=limit, cursor=cursor),
            )
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


async def list_runs(world: World, text: str, *columns: str) -> list[RunView]:
    wanted = RunFilter(filter=text, columns=columns)
    page = await read_page(world.database, world.admin, wanted, PageRequest(limit=500))
    assert page.next_cursor is None
    return page.items


KEYS = [
    ("agent",),
    ("agent", "agent.gamma"),
    ("agent.gamma",),
    ("name",),
    ("state",),
    ("seed", "env"),
    ("experiment",),
    ("user", "project", "kind"),
    ("cause",),
    ("agent.noisy", "agent"),
    (),
]


@pytest.mark.both_databases(
    "The databases compute sums and means in types of their own.",
    of=("app.db.repositories.filter_conditions",),
)
@pytest.mark.parametrize("few", [3_000, 0])
async def test_groups_equal_numpy_over_the_runs_and_their_filter_selects_the_runs(
    grouped: World, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lists, "FEW", few)
    for by in KEYS:
        expected: dict[tuple[Any, ...], list[RunView]] = defaultdict(list)
        for run in await list_runs(grouped, "seed<9", METRIC, *by):
            expected[tuple(run.values.get(key) for key in by)].append(run)
        found = await list_groups(grouped, *by, filter="seed<9", limit=1)
        assert {tuple(group.by.values()) for group in found} == set(expected), by
        for group in found:
            members = expected[tuple(group.by.values())]
            values = [run.values[METRIC] for run in members if run.values[METRIC] is not None]
            assert (group.runs, group.n) == (len(members), len(values))
            assert sum(group.states.values()) == len(members)
            assert group.mean == (None if not values else pytest.approx(np.mean(values)))
            spread = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else None
            assert group.stderr == (None if spread is None else pytest.approx(spread))
            same = await list_runs(grouped, f"{group.filter} seed<9")
            assert {run.id for run in same} == {run.id for run in members}, group.filter


async def test_groups_are_sorted_and_paged_with_those_without_a_mean_last(grouped: World) -> None:
    by = ("agent", "seed")
    best = [group.mean for group in await list_groups(grouped, *by, limit=2)]
    assert best == [8.0, 4.75, 3.0, 2.0, None]
    worst = [group.mean for group in await list_groups(grouped, *by, sort="mean", limit=2)]
    assert worst == [*best[-2::-1], None]
    names = [group.name for group in await list_groups(grouped, *by, sort="name", limit=2)]
    assert names == sorted(names)
    assert names[0] == "agent=dqn, seed=0"
    counts = [group.runs for group in await list_groups(grouped, "agent", sort="-runs")]
    assert counts == [4, 2]


@pytest.mark.parametrize(
    ("wanted", "code", "pointer"),
    [
        ({"by": ("started",)}, "not_a_group", "query/by"),
        ({"by": ("evaluation/mean",)}, "not_a_group", "query/by"),
        ({"by": ("agnet",)}, "unknown_column", "query/by"),
        ({"by": ("agent.gama",)}, "unknown_column", "query/by"),
        ({"by": ("a.b", "a.c", "a.d", "a.e", "a.f")}, "too_many_columns", "query/by"),
        ({"metric": "name"}, "not_a_metric", "query/metric"),
        ({"metric": "created"}, "not_a_metric", "query/metric"),
        ({"metric": "env_step,seed"}, "not_a_metric", "query/metric"),
        ({"metric": "nothing"}, "invalid_sort", "query/metric"),
        ({"sort": "agent"}, "invalid_sort", "query/sort"),
        ({"filter": "agent>1"}, "filter_wrong_operator", "query/filter"),
        ({"filter": "evaluation/meen>1"}, "unknown_filter_field", "query/filter"),
    ],
)
async def test_what_cannot_be_grouped_is_refused(
    grouped: World, wanted: dict[str, Any], code: str, pointer: str
) -> None:
    by, others = wanted.get("by", ("agent",)), {key: wanted[key] for key in wanted if key != "by"}
    with pytest.raises(InvalidError) as refused:
        await list_groups(grouped, *by, **others)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


async def test_more_runs_than_the_limit_are_refused(
    grouped: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_groups, "MAX_RUNS", 2)
    with pytest.raises(run_groups.TooLargeError, match="Narrow the filter"):
        await list_groups(grouped, "agent")


async def test_keys_are_those_that_exist(grouped: World) -> None:
    async with grouped.database.read() as session:
        found = await run_keys.list_keys(session, grouped.admin)
    assert {"agent", "state", "seed"} <= {field.name for field in found.fields}
    assert "agent.gamma" in found.members
    assert "kind" not in found.members
    assert "evaluation/mean" in found.series
    assert found.is_complete


async def test_series_are_those_of_the_runs_that_a_filter_finds(grouped: World) -> None:
    async with grouped.database.read() as session:
        every = await run_keys.list_keys(session, grouped.admin)
        none = await run_keys.list_keys(session, grouped.admin, "seed:987")
        some = await run_keys.list_keys(session, grouped.admin, "seed>=0")
        with pytest.raises(InvalidError, match="did you mean agent"):
            await run_keys.list_keys(session, grouped.admin, "agnet:x")
    assert none.series == ()
    assert some.series == every.series
    assert none.members == every.members


async def test_means_of_numbers_too_large_to_square_have_no_spread() -> None:
    assert compute_group_mean([]) == GroupMean(0, None, None)
    assert compute_group_mean([2.0]) == GroupMean(1, 2.0, None)
    assert compute_group_mean([1e300, -1e300]) == GroupMean(2, 0.0, None)
    assert compute_group_mean([1.7e308, 1.7e308]).mean is None
