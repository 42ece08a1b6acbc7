"""Lists in the order of several keys equal those that plain Python sorts."""

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select, update

from app.db.clock import db_now
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.summaries import SeriesNameRow, SeriesSummaryRow, SetupRow
from app.db.repositories import run_lists
from app.domain.errors import InvalidError
from app.domain.list_filters import ExperimentFilter, RunFilter
from app.domain.paging import PageRequest
from app.services.lists import experiment_list
from tests.app.services.test_list_filters import list_runs
from tests.support.run_pages import read_page
from tests.support.server_fixture import World, make_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")
both_databases = pytest.mark.both_databases(
    "The databases order texts, numbers and missing values in different ways.",
    of=("app.db.repositories.filter_conditions",),
)

SERIES = ("loss/td", "evaluation/mean")
RUN_KEYS = (
    "agent", "env", "name", "state", "seed", "env_step", "cause", "created", "started", "user",
    "agent.gamma", "agent.name", "agent.no_member", "evaluation/mean.best", "loss/td",
    "loss/td.count", "no/series", "reached.nothing",
)  # fmt: skip
EXPERIMENT_KEYS = (
    "agent", "env", "name", "kind", "created", "user", "agent.gamma", "agent.no_member",
    "evaluation/mean.best", "loss/td", "no/series",
)  # fmt: skip
TIMES = {"created", "started"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def many(module_world: World) -> World:
    """60 runs of six experiments with few different values of each key, and some without one."""
    world, chooser = module_world, random.Random(11)
    for place in range(6):
        agent = {"name": ("dqn", "ppo")[place % 2], "gamma": (0.9, 0.99, 0.999)[place // 2]}
        await world.submit(
            make_definition(name=f"name {place // 3}", agent=agent), seeds=list(range(10))
        )
    async with world.database.write() as session:
        envs = ("Ant-v5", "CartPole-v1", "Hopper-v5")
        for experiment in await session.scalars(select(ExperimentRow)):
            experiment.env = chooser.choice(envs)
            experiment.created_at = db_now(float(chooser.randrange(2)))
        experiments = {one.id: one for one in await session.scalars(select(ExperimentRow))}
        session.add_all(SeriesNameRow(id=i + 1, name=name) for i, name in enumerate(SERIES))
        setups: dict[tuple[str, str], int] = {}
        for one in experiments.values():
            setups.setdefault((one.agent, one.env), 1 + len(setups))
        session.add_all(
            SetupRow(id=number, project_id=world.project_id, agent=agent, env=env)
            for (agent, env), number in setups.items()
        )
        await session.flush()
        for run in (await session.scalars(select(RunRow))).all():
            run.env_step = chooser.randrange(3)
            run.state = chooser.choice(("queued", "running", "failed"))
            run.cause = "diverged" if run.state == "failed" else None
            run.created_at = db_now(-float(chooser.randrange(3)))
            run.started_at = None if chooser.random() < 0.4 else db_now(-1.0)
            experiment = experiments[run.experiment_id]
            session.add_all(
                SeriesSummaryRow(
                    run_id=run.id,
                    name_id=number,
                    setup_id=setups[experiment.agent, experiment.env],
                    points=chooser.randrange(1, 3),
                    nonfinite=0,
                    last=chooser.choice((None, 0.1, 0.25, 1 / 3)),
                    best=chooser.choice((None, 1e9, 2 / 3)),
                    recent="[]",
                )
                for number in (1, 2)
                if chooser.random() < 0.7
            )
    return world


def sort_plainly(
    rows: Sequence[tuple[str, dict[str, Any]]], keys: Sequence[tuple[str, bool]]
) -> list[str]:
    """Returns the IDs of rows in order: by one key after the other, from the last one on."""
    found = sorted(rows, key=lambda row: row[0], reverse=keys[-1][1])
    for key, is_descending in reversed(keys):
        having = [row for row in found if row[1][key] is not None]
        lacking = [row for row in found if row[1][key] is None]
        having.sort(key=lambda row: read(key, row[1][key]), reverse=is_descending)
        found = having + lacking
    return [row[0] for row in found]


def read(key: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if key in TIMES else value


def choose_orders(chooser: random.Random, known: Sequence[str]) -> list[list[tuple[str, bool]]]:
    fixed = [[("agent", False), ("evaluation/mean.best", True), ("created", True)]]
    fixed += [[("env", True), ("agent", False), ("loss/td", False)]]
    return fixed + [
        [(key, chooser.random() < 0.5) for key in chooser.sample(known, chooser.randint(2, 4))]
        for _ in range(14)
    ]


def write(order: Sequence[tuple[str, bool]]) -> str:
    return ",".join(f"{'-' if is_descending else ''}{key}" for key, is_descending in order)


@pytest.mark.parametrize("text", ["", "agent:dqn", "evaluation/mean.best>1"])
@pytest.mark.parametrize(("few", "groups"), [(3_000, 50), (0, 50), (0, 1)])
async def test_runs(
    many: World, text: str, few: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lists, "FEW", few)
    monkeypatch.setattr(run_lists, "_MAX_GROUPS", groups)
    chooser = random.Random(f"{text} {few} {groups}")
    columns = tuple(key for key in RUN_KEYS if not key.startswith("reached."))
    views = await list_runs(many, text, columns=columns)
    rows = [(view.id, {**view.values, "reached.nothing": None}) for view in views]
    assert len(rows) > 5
    for order in choose_orders(chooser, RUN_KEYS):
        expected = sort_plainly(rows, order)
        limit = chooser.choice((1, 7, 20))
        found = await list_runs(many, text, sort=write(order), limit=limit)
        assert [view.id for view in found] == expected, order


async def test_a_key_and_a_term_of_many_runs_may_both_be_of_experiments(
    many: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the list could not be answered if more runs than `FEW` fitted."""
    expected = {
        key: await list_runs(many, "agent:dqn name:~name", sort=key) for key in ("env", "id")
    }
    monkeypatch.setattr(run_lists, "FEW", 0)
    for key, views in expected.items():
        assert await list_runs(many, "agent:dqn name:~name", sort=key) == views


@both_databases
async def test_experiments(many: World) -> None:
    chooser = random.Random(2)

    async def list_experiments(sort: str, limit: int) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        while True:
            async with many.database.read() as session:
                page = await experiment_list.list_experiments(
                    session,
                    many.admin,
                    ExperimentFilter(columns=EXPERIMENT_KEYS),
                    PageRequest(sort=sort, limit=limit, cursor=cursor),
                )
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    rows = [(view.id, view.values) for view in await list_experiments("name", 100)]
    assert len(rows) == 6
    for order in choose_orders(chooser, EXPERIMENT_KEYS):
        expected = sort_plainly(rows, order)
        found = await list_experiments(write(order), chooser.choice((1, 2, 4)))
        assert [view.id for view in found] == expected, order


@both_databases
async def test_pages_follow_each_other_while_values_change(many: World) -> None:
    """A page begins after the values of the row before it, whether or not that row has moved."""
    first = PageRequest(sort="state,-seed", limit=5)
    page = await read_page(many.database, many.admin, RunFilter(), first)
    last = page.items[-1]
    async with many.database.write() as session:
        await session.execute(update(RunRow).where(RunRow.id == last.id).values(state="succeeded"))
    request = PageRequest(sort="state,-seed", limit=500, cursor=page.next_cursor)
    rest = await read_page(many.database, many.admin, RunFilter(), request)
    seen = [view.id for view in page.items] + [view.id for view in rest.items]
    assert len(seen) == 61
    assert rest.items[-1].id == last.id
    assert len(set(seen)) == 60


@pytest.mark.parametrize(
    ("sort", "code", "part"),
    [
        ("agent,sed", "invalid_sort", "key 2 of sort must be one of agent, "),
        ("agent,sed", "invalid_sort", "did you mean seed?"),
        ("agent,", "invalid_sort", "key 2 of sort"),
        (",agent", "invalid_sort", "key 1 of sort"),
        ("agent,,seed", "invalid_sort", "key 2 of sort"),
        ("agent,--seed", "invalid_sort", "key 2 of sort"),
        ("agent,-agent", "duplicate_sort_key", "key 2 of sort is the same as key 1"),
        ("created,seed,-created_at", "duplicate_sort_key", "key 3 of sort is the same as key 1"),
        ("loss/td,-loss/td.last", "duplicate_sort_key", "name each key once"),
        ("agent,env,seed,state,name", "too_many_sort_keys", "5 keys, and at most 4"),
        (f"agent,{'a' * 700}/b", "sort_too_long", "600 characters"),
    ],
)
async def test_refused_orders(many: World, sort: str, code: str, part: str) -> None:
    with pytest.raises(InvalidError) as caught:
        await list_runs(many, sort=sort)
    assert (caught.value.code, caught.value.pointer) == (code, "query/sort")
    assert part in caught.value.detail


async def test_cursors_of_another_order_are_refused(many: World) -> None:
    first = PageRequest(sort="agent,-seed", limit=3)
    page = await read_page(many.database, many.admin, RunFilter(), first)
    for sort in ("agent", "agent,seed", "-seed,agent", "agent,-seed,name"):
        request = PageRequest(sort=sort, limit=3, cursor=page.next_cursor)
        with pytest.raises(InvalidError) as caught:
            await read_page(many.database, many.admin, RunFilter(), request)
        assert caught.value.code == "invalid_cursor"
        assert "in another order" in caught.value.detail
