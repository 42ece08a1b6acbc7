"""Pages of runs in the order of a statistic equal the sort of all runs."""

import random

import pytest
import pytest_asyncio
from sqlalchemy import select

from app.db.models.experiments import ExperimentRow
from app.db.models.summaries import SeriesNameRow, SeriesSummaryRow, SetupRow
from app.db.repositories import run_lists
from tests.app.services.test_list_filters import list_runs
from tests.support.server_fixture import World, make_definition

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.both_databases(
        "SQLite merges setups by itself, PostgreSQL by a lateral join.",
        of=("app.db.repositories.run_lists",),
    ),
]
ENVIRONMENTS = ("Env-a", "Env-b", "Env-c", "Env-d", "Env-e")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def rows(module_world: World) -> list[tuple[float | None, str, str, int]]:
    """Value, run, environment and seed of 240 runs: most high values are of one environment."""
    world, chooser = module_world, random.Random(3)
    for place, env in enumerate(ENVIRONMENTS):
        agent = {"name": "dqn", "gamma": 0.9 + place / 100}
        await world.submit(make_definition(name=env, agent=agent), seeds=list(range(48)))
    runs = await list_runs(world)
    rows = []
    async with world.database.write() as session:
        envs = {}
        for experiment in await session.scalars(select(ExperimentRow)):
            envs[experiment.id] = experiment.env = experiment.name
        name = SeriesNameRow(name="a/b")
        setups = {
            env: SetupRow(project_id=world.project_id, agent="dqn", env=env) for env in ENVIRONMENTS
        }
        session.add_all([name, *setups.values()])
        await session.flush()
        for run in runs:
            env = envs[run.experiment_id]
            value = float(chooser.randrange(12) + (9 if env == "Env-b" else 0))
            rows.append((None if chooser.random() < 0.1 else value, run.id, env, run.seed))
        session.add_all(
            SeriesSummaryRow(
                run_id=run_id, name_id=name.id, setup_id=setups[env].id, points=1, nonfinite=0,
                best=value, recent="[]",
            )
            for value, run_id, env, _ in rows
        )  # fmt: skip
    return rows


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(
    ("envs", "seeds", "least"),
    [
        (ENVIRONMENTS, 48, None),
        (("Env-b",), 48, None),
        (("Env-c", "Env-d"), 48, None),
        (ENVIRONMENTS, 20, None),
        (("Env-b", "Env-e"), 20, None),
        (ENVIRONMENTS, 48, 8.0),
        (("Env-b", "Env-a"), 20, 8.0),
    ],
)
async def test_pages_follow_each_other_as_in_a_sort_of_all(
    module_world: World,
    rows: list[tuple[float | None, str, str, int]],
    envs: tuple[str, ...],
    seeds: int,
    least: float | None,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_descending: bool,
) -> None:
    monkeypatch.setattr(run_lists, "FEW", 0)
    terms = [f"env:{','.join(envs)}"] if envs != ENVIRONMENTS else []
    terms += [f"seed<{seeds}"] if seeds < 48 else []
    terms += [f"a/b.best>={least}"] if least is not None else []
    fitting = [row for row in rows if row[2] in envs and row[3] < seeds]
    having = sorted(
        ((row[0], row[1]) for row in fitting if row[0] is not None and row[0] >= (least or 0.0)),
        reverse=is_descending,
    )
    expected = [run_id for _, run_id in having]
    if least is None:
        lacking = (run_id for value, run_id, *_ in fitting if value is None)
        expected += sorted(lacking, reverse=is_descending)
    assert len(expected) > 8
    sort = f"{'-' if is_descending else ''}a/b.best"
    for limit in (7, 50, 500):
        runs = await list_runs(module_world, " ".join(terms), sort=sort, limit=limit)
        assert [run.id for run in runs] == expected
