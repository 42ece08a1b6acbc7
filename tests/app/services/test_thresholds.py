"""First crossings of thresholds equal those of the points that count, and lists go by them."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import select

from app.daemons.summariser import Summariser
from app.db.engine import Database
from app.db.models import SeriesSummaryRow, SetupRow, ThresholdCrossingRow, ThresholdRow
from app.db.repositories import run_lists
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services import moves
from app.services.projects import thresholds
from app.services.telemetry import compaction
from palestra.contract.states import Cause, Outcome
from palestra.contract.thresholds import ThresholdDirection, ThresholdRequest, ThresholdView
from tests.app.services.test_list_filters import list_experiments, list_runs, name_runs
from tests.app.services.test_list_filters import listed as listed
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World

Crossings = dict[str, tuple[int, float, float]]
AT_MOST = ThresholdDirection.AT_MOST


async def declare(
    world: World,
    name: str,
    series: str,
    value: float,
    direction: ThresholdDirection = ThresholdDirection.AT_LEAST,
    *,
    slug: str = "default",
    caller: Principal | None = None,
) -> ThresholdView:
    request = ThresholdRequest(series=series, value=value, direction=direction)
    async with world.database.write() as session:
        return await thresholds.declare(session, caller or world.admin, slug, name, request)


async def read(database: Database, run_id: str) -> Crossings:
    """Returns env_step, time and seconds of the crossings of a run by the threshold's name."""
    row = ThresholdCrossingRow
    query = select(ThresholdRow.name, row.env_step, row.wall, row.seconds).join(
        ThresholdRow, ThresholdRow.id == row.threshold_id
    )
    async with database.read() as session:
        found = await session.execute(query.where(row.run_id == run_id))
        return {name: (env_step, wall, seconds) for name, env_step, wall, seconds in found}


@pytest.mark.parametrize("seed", range(8))
async def test_any_history_gives_the_first_crossings_of_the_points_that_count(
    live_run: AttemptWithStore, seed: int
) -> None:
    """Points arrive late and out of order, attempts are superseded, thresholds are replaced."""
    chooser = random.Random(seed)
    summariser, world, run = Summariser(live_run.database), live_run.world, live_run.run_id
    step, attempts, kept_step = 10, 1, None
    points: dict[str, list[tuple[int, float]]] = {}
    declared: dict[str, tuple[str, Callable[[float], bool]]] = {}
    actions = ("send", "send", "send", "evaluate", "compact", "tick", "snapshot", "resume", "set")
    for _ in range(30):
        action = chooser.choice(actions)
        if action == "send":
            steps = [chooser.randint(max(1, step - 9), step) for _ in range(chooser.randint(1, 6))]
            values = [chooser.choice((chooser.uniform(-5, 5), math.nan)) for _ in steps]
            points.setdefault("loss", []).extend(zip(steps, values, strict=True))
            sent = ["NaN" if math.isnan(value) else value for value in values]
            await live_run.send(records.make_points(run, "loss", steps, sent))
            step += 3
        elif action == "evaluate":
            step += 1
            mean = chooser.uniform(-5, 5)
            points.setdefault("evaluation/mean", []).append((step, mean))
            await live_run.send(records.make_evaluation(run, step, mean))
        elif action == "compact":
            await compaction.compact_tail(live_run.database, run)
        elif action == "tick":
            await summariser.tick()
        elif action == "snapshot":
            step += 1
            await live_run.write_snapshot(step)
            kept_step = step
        elif action == "set":
            name, bound = chooser.choice(("one", "two")), chooser.uniform(-4, 4)
            series = chooser.choice(("loss", "evaluation/mean"))
            if chooser.random() < 0.5:
                await declare(world, name, series, bound)
                declared[name] = (series, bound.__le__)
            else:
                await declare(world, name, series, bound, AT_MOST)
                declared[name] = (series, bound.__ge__)
        elif kept_step is not None and attempts < 2:
            attempts += 1
            await live_run.resume(attempts)
            points = {
                name: [point for point in some if point[0] <= kept_step]
                for name, some in points.items()
            }
            step = kept_step + 10
    await summariser.tick()
    await summariser.tick()
    found = await read(live_run.database, run)
    reached = {
        name: [at for at, value in points.get(series, ()) if reaches(value)]
        for name, (series, reaches) in declared.items()
    }
    assert {name: at for name, (at, _, _) in found.items()} == {
        name: min(steps) for name, steps in reached.items() if steps
    }
    first = min((wall - seconds for _, wall, seconds in found.values()), default=0.0)
    assert all(wall - seconds == first for _, wall, seconds in found.values())
    async with live_run.database.read() as session:
        page = await thresholds.list_thresholds(session, world.admin, "default")
    assert {one.name: one.runs for one in page.items} == {
        name: bool(steps) for name, steps in reached.items()
    }
    assert all(one.pending_runs == 0 for one in page.items)


async def test_a_summary_that_is_computed_meanwhile_does_not_hide_a_new_threshold(
    live_run: AttemptWithStore,
) -> None:
    """A threshold is declared between the reading and the writing of a summary."""
    await live_run.send(records.make_points(live_run.run_id, "loss", [1, 2, 3]))
    summariser, write = Summariser(live_run.database), live_run.database.write
    declared = False

    def declare_first() -> object:
        nonlocal declared
        if declared:
            return write()
        declared = True
        return _DeclaredBefore()

    class _DeclaredBefore:
        async def __aenter__(self) -> object:
            await declare(live_run.world, "two", "loss", 2)
            self._own = write()
            return await self._own.__aenter__()

        async def __aexit__(self, *error: object) -> object:
            return await self._own.__aexit__(*error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_run.database, "write", declare_first)
        await summariser.tick()
    await summariser.tick()
    assert (await read(live_run.database, live_run.run_id))["two"] == (2, 2.0, 1.0)


async def test_the_same_again_changes_nothing_and_removal_removes_crossings(
    live_run: AttemptWithStore,
) -> None:
    world, database = live_run.world, live_run.database
    await live_run.send(records.make_points(live_run.run_id, "loss", [1, 2, 3]))
    made = await declare(world, "two", "loss", 2)
    assert (made.runs, made.pending_runs) == (0, 1)
    await Summariser(database).tick()
    again = await declare(world, "two", "loss", 2)
    assert (again.runs, again.pending_runs) == (1, 0)
    async with database.write() as session:
        await thresholds.remove(session, world.admin, "default", "two")
    assert await read(database, live_run.run_id) == {}
    with pytest.raises(NotFoundError):
        async with database.write() as session:
            await thresholds.remove(session, world.admin, "default", "two")


async def test_a_project_has_a_bounded_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "MOST", 1)
    await declare(world, "one", "loss", 1)
    await declare(world, "one", "loss", 2)
    with pytest.raises(ConflictError) as caught:
        await declare(world, "two", "loss", 2)
    assert caught.value.code == "too_many_thresholds"


@pytest.mark.parametrize("few", [3_000, 0])
async def test_lists_are_filtered_and_sorted_by_crossings(
    listed: World, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations are at the env_steps 1, 2, 3: dqn 1, 5, 2 and 7, 3; ppo 4 and none."""
    monkeypatch.setattr(run_lists, "FEW", few)
    await declare(listed, "four", "evaluation/mean", 4)
    await declare(listed, "two", "evaluation/mean", 2, AT_MOST)
    await Summariser(listed.database).tick()
    every = await list_runs(
        listed, columns=("agent", "seed", "reached.four", "reached.four.seconds")
    )
    steps = {
        f"{one.values['agent']}-{one.values['seed']}": one.values["reached.four"] for one in every
    }
    assert steps["ppo-1"] is None
    assert steps["dqn-1"] == steps["ppo-0"] < steps["dqn-0"]
    for limit in (1, 100):
        ascending = await name_runs(listed, sort="reached.four", limit=limit)
        assert sorted(ascending[:2]) == ["dqn-1", "ppo-0"]
        assert ascending[2:] == ["dqn-0", "ppo-1"]
        descending = await name_runs(listed, sort="-reached.four", limit=limit)
        assert descending[0] == "dqn-0"
        assert descending[3] == "ppo-1"
        assert len(await name_runs(listed, sort="reached.nothing", limit=limit)) == 4
    first = steps["dqn-1"]
    for text, expected in {
        f"reached.four<={first}": ["dqn-1", "ppo-0"],
        f"reached.four>{first}": ["dqn-0"],
        "not reached.four>=0": ["ppo-1"],
        "reached.two>=0": ["dqn-0"],
        "reached.four.seconds>=0 agent:dqn": ["dqn-0", "dqn-1"],
    }.items():
        assert sorted(await name_runs(listed, text)) == expected, text
        by_crossing = await name_runs(listed, text, sort="reached.four", limit=1)
        assert sorted(by_crossing) == expected, text


async def test_experiments_have_the_mean_once_all_of_their_runs_reached_it(listed: World) -> None:
    await declare(listed, "four", "evaluation/mean", 4)
    await Summariser(listed.database).tick()
    columns = ("reached.four", "reached.four.seconds")
    dqn, ppo = await list_experiments(listed, "", sort="reached.four", columns=columns)
    runs = await list_runs(listed, "agent:dqn", columns=columns)
    for column in columns:
        values = [one.values[column] for one in runs]
        assert dqn.values[column] == sum(map(float, values)) / 2  # type: ignore[arg-type]
        assert ppo.values[column] is None
    (found,) = await list_experiments(listed, "reached.four>0")
    assert found.id == dqn.id
    with pytest.raises(InvalidError) as caught:
        await list_runs(listed, "reached.fou>0")
    assert "did you mean four?" in str(caught.value)


async def test_summaries_and_crossings_follow_a_moved_experiment(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    """Thresholds belong to projects: those of the source are left, those of the target counted."""
    world, database, run = live_run.world, live_run.database, live_run.run_id
    await declare(world, "two", "loss", 2)
    await declare(world, "three", "loss", 3, slug="target", caller=mover)
    await live_run.send(records.make_points(run, "loss", [1, 2, 3, 4]))
    await Summariser(database).tick()
    assert (await read(database, run)).keys() == {"two"}
    await world.release(live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq)
    experiment_id = (await world.run(run)).experiment_id
    async with database.write() as session:
        await moves.move(session, mover, live_run.store, "default", experiment_id, "target")
    await Summariser(database).tick()
    assert await read(database, run) == {"three": (3, 3.0, 2.0)}
    target = replace(mover, memberships=mover.memberships[-1:])
    listed = World(**{**vars(world), "admin": target})
    assert [
        one.id for one in await list_runs(listed, "series.loss:4", sort="-series.loss.best")
    ] == [run]
    assert await list_runs(world, sort="-series.loss.best") == []
    query = select(SetupRow.project_id).join(
        SeriesSummaryRow, SeriesSummaryRow.setup_id == SetupRow.id
    )
    async with database.read() as session:
        projects = set(await session.scalars(query.where(SeriesSummaryRow.run_id == run)))
    assert projects == {target.memberships[0].project_id}
