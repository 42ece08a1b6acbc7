"""Lists filtered, sorted and paged in SQL equal those that plain Python makes of all rows."""

import itertools
from typing import Any

import pytest
import pytest_asyncio

from app.daemons.summariser import Summariser
from app.db.repositories import run_lists
from app.domain.errors import InvalidError
from app.domain.list_filters import ExperimentFilter, RunFilter
from app.domain.paging import PageRequest
from app.services.lists import experiment_list
from palestra.contract.resources import ExperimentView, RunView
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.run_pages import read_page
from tests.support.server_fixture import World, make_definition
from tests.support.statements import note_statements
from tests.support.training import make_evaluations, train

pytestmark = pytest.mark.asyncio(loop_scope="module")
both_databases = pytest.mark.both_databases(
    "The databases compare and order texts, numbers and missing values in different ways.",
    of=("app.db.repositories.filter_conditions",),
)

SCORES = {
    ("dqn", 0): (1.0, 5.0, 2.0), ("dqn", 1): (7.0, 3.0), ("ppo", 0): (4.0,), ("ppo", 1): (),
}  # fmt: skip


async def fill(world: World) -> World:
    """Makes two experiments of two runs each, of which one has no evaluation, summarised."""
    registered = await world.register(slots=4)
    definitions = {
        "dqn": make_definition(name="first one"),
        "ppo": make_definition(name="second", agent={"name": "ppo"}),
    }
    place = itertools.count()
    for agent, definition in definitions.items():
        experiment, _ = await world.submit(definition, seeds=(0, 1))
        for job in await world.list_jobs(experiment_id=experiment.id):
            (run_id,) = job.run_ids
            seed = (await world.run(run_id)).seed
            content = [
                *make_evaluations(*SCORES[agent, seed]),
                records.make_points("", "loss/td", [1, 2], [0.5, 0.25 + seed]),
            ]
            end = (Outcome.SUCCEEDED, Cause.BUDGET) if seed == 0 else None
            await train(world, job, (registered.worker_id, next(place)), content, end)
    await Summariser(world.database).tick()
    return world


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def listed(module_world: World) -> World:
    return await fill(module_world)


async def list_runs(
    world: World, text: str = "", *, sort: str = "-created_at", limit: int = 100, **wanted: Any
) -> list[RunView]:
    """Returns the runs of all pages."""
    found: list[RunView] = []
    cursor: str | None = None
    while True:
        page = await read_page(
            world.database,
            world.admin,
            RunFilter(filter=text, **wanted),
            PageRequest(sort=sort, limit=limit, cursor=cursor),
        )
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


async def name_runs(world: World, text: str = "", **options: Any) -> list[str]:
    columns = ("agent", "seed")
    return [
        f"{view.values['agent']}-{view.values['seed']}"
        for view in await list_runs(world, text, columns=columns, **options)
    ]


ALL = ["dqn-0", "dqn-1", "ppo-0", "ppo-1"]
FILTERS = {
    "": ALL,
    "agent:ppo": ["ppo-0", "ppo-1"],
    "agent:~PP": ["ppo-0", "ppo-1"],
    "-agent:ppo": ["dqn-0", "dqn-1"],
    "agent:ppo,dqn seed:1": ["dqn-1", "ppo-1"],
    "env:~cart": ALL,
    "env:cart": [],
    "name:~FIRST": ["dqn-0", "dqn-1"],
    '"first one"': ["dqn-0", "dqn-1"],
    "state:running": ["dqn-1", "ppo-1"],
    "not state:running": ["dqn-0", "ppo-0"],
    "evaluation/mean>2": ["dqn-1", "ppo-0"],
    "evaluation/mean.best>4": ["dqn-0", "dqn-1"],
    "evaluation/mean.mean10>=4": ["dqn-1", "ppo-0"],
    "evaluation/mean.count<3": ["dqn-1", "ppo-0"],
    "-evaluation/mean.best>4": ["ppo-0", "ppo-1"],
    "loss/td:0.25": ["dqn-0", "ppo-0"],
    "loss/td.best:0.5": ["dqn-0", "ppo-0"],
    "evaluation/mean>100": [],
    "created:<7d": ALL,
    "created:>7d": [],
    "created>2020-01-01": ALL,
    "user:me": ALL,
    "user:admin": ALL,
    "-user:admin": [],
    "project:default": ALL,
    "-project:default": [],
    "archived:false": ALL,
    "archived:true": [],
    "agent.name:ppo": ["ppo-0", "ppo-1"],
    "agent.gamma:0.99": ALL,
    "agent.gamma<0.5": [],
    "loop.env_steps>=1": ALL,
    "agent.gamma:0.99 agent.name:ppo": ["ppo-0", "ppo-1"],
    "agent.gamma>0.5 agent.gamma<1": ALL,
    "agent.gamma>0.5 agent.gamma<0.9": [],
    "agent.gamma:0.99 -agent.name:ppo": ["dqn-0", "dqn-1"],
    "-agent.name:ppo -agent.name:dqn": [],
    "-agent.epsilon_start:1": ["ppo-0", "ppo-1"],
    "-agent.epsilon_start:1 agent.gamma:0.99": ["ppo-0", "ppo-1"],
    "-agent.epsilon_start:7 agent.gamma>0.5": ALL,
    "agent.epsilon_start:1 -agent.name:ppo": ["dqn-0", "dqn-1"],
    "agent.epsilon_start>0 -agent.gamma:0.99": [],
    "agent.gamma:0.99 agent.name:~P": ["ppo-0", "ppo-1"],
    "finished:<1h": ["dqn-0", "ppo-0"],
    "-finished:<1h": ["dqn-1", "ppo-1"],
    "agent:dqn evaluation/mean>2 state:running": ["dqn-1"],
}


@both_databases
@pytest.mark.parametrize("few", [3_000, 0])
async def test_filters(listed: World, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways give the same: to find few runs first, or to walk an index."""
    monkeypatch.setattr(run_lists, "FEW", few)
    for text, expected in FILTERS.items():
        assert sorted(await name_runs(listed, text)) == expected, text
        by_best = await name_runs(listed, text, sort="-evaluation/mean.best", limit=1)
        order = [one for one in ("dqn-1", "dqn-0", "ppo-0", "ppo-1") if one in expected]
        assert by_best == order, text


@pytest.mark.parametrize("sort", ["-evaluation/mean.best", "created", "agent.gamma", "agent,seed"])
@pytest.mark.parametrize("term", ["agent.gamma<1", "-agent.gamma:7"])
async def test_many_terms_on_members_read_the_members_as_often_as_two(
    listed: World, sort: str, term: str
) -> None:
    """Regression: each had a subquery of its own, and 32 of them took 13 seconds."""
    subqueries = []
    for number in (2, 32):
        text = " ".join(term.replace("gamma", name) for name in MEMBERS * (number // 2))
        with note_statements(listed.database) as statements:
            await name_runs(listed, text, sort=sort)
        subqueries.append(max(one.count("FROM definition_members") for one in statements))
    assert subqueries[0] == subqueries[1] > 0


MEMBERS = ("gamma", "learning_rate")
KEYS = (
    "created", "created_at", "seed", "env_step", "update", "episode", "state", "id", "experiment",
    "agent", "env", "name", "kind", "user", "started", "finished", "cause", "evaluation/mean",
    "evaluation/mean.best", "loss/td.mean10", "loss/td.count", "agent.name", "agent.gamma",
    "agent.nothing", "no/series",
)  # fmt: skip


@both_databases
@pytest.mark.parametrize("few", [3_000, 0])
async def test_every_key_orders_all_runs_in_pages(
    listed: World, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lists, "FEW", few)
    for key in KEYS:
        column = "created" if key == "created_at" else key
        for sign in ("", "-"):
            found = await list_runs(
                listed, "seed<9", sort=f"{sign}{key}", limit=1, columns=(column,)
            )
            assert len({view.id for view in found}) == 4, key
            values = [view.values[column] for view in found]
            having = [value for value in values if value is not None]
            assert values[: len(having)] == having, f"{sign}{key}: rows without a value are last"
            in_order = sorted(having, reverse=sign == "-")  # type: ignore[type-var]
            assert having == in_order, f"{sign}{key}"


async def list_experiments(
    world: World,
    text: str,
    sort: str = "name",
    columns: tuple[str, ...] = ("evaluation/mean.best", "agent.gamma"),
) -> list[ExperimentView]:
    found: list[ExperimentView] = []
    cursor: str | None = None
    while True:
        async with world.database.read() as session:
            page = await experiment_list.list_experiments(
                session,
                world.admin,
                ExperimentFilter(filter=text, columns=columns),
                PageRequest(sort=sort, limit=1, cursor=cursor),
            )
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


@both_databases
async def test_experiments_are_filtered_and_sorted_by_the_means_of_their_runs(
    listed: World,
) -> None:
    for text, expected in {
        "": ["dqn", "ppo"],
        "agent:ppo": ["ppo"],
        "evaluation/mean.best>4": ["dqn"],
        "-evaluation/mean.best>4": ["ppo"],
        "state:running": ["dqn", "ppo"],
        "archived:true": [],
        "agent.name:~d": ["dqn"],
        "second": ["ppo"],
        "user:me created:<1d": ["dqn", "ppo"],
    }.items():
        assert [one.agent for one in await list_experiments(listed, text)] == expected, text
    for sort, expected in {
        "-evaluation/mean.best": ["dqn", "ppo"],
        "evaluation/mean.best": ["ppo", "dqn"],
        "-name": ["ppo", "dqn"],
        "agent.name": ["dqn", "ppo"],
        "user": ["dqn", "ppo"],
    }.items():
        found = await list_experiments(listed, "", sort)
        if sort != "user":
            assert [one.agent for one in found] == expected, sort
    (dqn, ppo) = await list_experiments(listed, "")
    assert dqn.values == {"evaluation/mean.best": 6.0, "agent.gamma": 0.99}
    assert ppo.values["evaluation/mean.best"] == 4.0


@pytest.mark.parametrize(
    ("text", "code", "position", "part"),
    [
        ("agent:dqn evaluation/men>1", "unknown_filter_field", 10, "evaluation/mean"),
        ("agent.gama:1", "unknown_filter_field", 0, "agent.gamma"),
        ("agnt:1", "unknown_filter_field", 0, "agent"),
        ("seed:x", "filter_not_a_number", 5, "number"),
    ],
)
async def test_refused_filters(
    listed: World, text: str, code: str, position: int, part: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        await list_runs(listed, text)
    assert (caught.value.code, caught.value.extra["position"]) == (code, position)
    assert caught.value.pointer == "query/filter"
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sort": "sed"}, "invalid_sort"),
        ({"sort": "project"}, "invalid_sort"),
        ({"columns": ("sed",)}, "unknown_column"),
        ({"columns": tuple(f"a/{i}" for i in range(51))}, "too_many_columns"),
    ],
)
async def test_refused_keys(listed: World, options: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidError) as caught:
        await list_runs(listed, **options)
    assert caught.value.code == code


async def test_cursors_of_another_key_are_refused(listed: World) -> None:
    first = PageRequest(sort="agent", limit=1)
    page = await read_page(listed.database, listed.admin, RunFilter(), first)
    for sort in ("seed", "-agent", "evaluation/mean.best"):
        request = PageRequest(sort=sort, limit=1, cursor=page.next_cursor)
        with pytest.raises(InvalidError) as caught:
            await read_page(listed.database, listed.admin, RunFilter(), request)
        assert caught.value.code == "invalid_cursor"


SETUP_FILTERS = ("", "agent:dqn", "-agent:dqn env:~CART", "project:default", "agent:nothing")
STATISTIC_ORDERS = ("evaluation/mean.best", "-evaluation/mean.best", "-loss/td", "loss/td.count")


@both_databases
@pytest.mark.parametrize("text", SETUP_FILTERS)
async def test_pages_of_an_index_are_those_of_a_sort(listed: World, text: str) -> None:
    """The index of a statistic lists by one key; by two keys all runs are sorted."""
    for sort in (*STATISTIC_ORDERS, "-no/series"):
        sign = "-" if sort.startswith("-") else ""
        expected = await name_runs(listed, text, sort=f"{sort},{sign}id")
        for limit in (1, 2, 3, 100):
            assert await name_runs(listed, text, sort=sort, limit=limit) == expected, sort
