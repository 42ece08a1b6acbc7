"""First crossings of thresholds equal those of the points that count, and lists go by them."""

import math
import random
import statistics
from collections.abc import Callable, Mapping
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
from app.services.curves import summaries
from app.services.projects import thresholds
from app.services.telemetry import compaction
from palestra.contract.states import Cause, Outcome
from palestra.contract.thresholds import ThresholdDirection, ThresholdRequest, ThresholdView
from tests.app.services.test_list_filters import fill, list_experiments, list_runs, name_runs
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_definition
from tests.support.training import train

both_databases = pytest.mark.both_databases(
    "Crossings are inserted or replaced by a statement of each database, under locks of rows.",
    of=(
        "app.db.repositories.stale_summaries",
        "app.db.repositories.summaries",
    ),
)

Crossings = dict[str, tuple[int, float, float]]
AT_MOST = ThresholdDirection.AT_MOST


@pytest.fixture
async def listed(world: World) -> World:
    return await fill(world)


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


@both_databases
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


async def test_a_later_threshold_needs_the_points_of_its_series_alone(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of points in blocks and of those that are not, but not of those that are not summarised."""
    run, summariser = live_run.run_id, Summariser(live_run.database)
    await live_run.send(records.make_points(run, "loss", [1, 2, 3]))
    await live_run.send(records.make_points(run, "other", [1, 2, 3]))
    await live_run.send(records.make_evaluation(run, 4, 7.0))
    await compaction.compact_tail(live_run.database, run)
    await live_run.send(records.make_points(run, "loss", [4, 5, 6]))
    await summariser.tick()
    for name, series, value in (
        ("two", "loss", 2.0), ("five", "loss", 5.0), ("never", "loss", 99.0),
        ("seven", "evaluation/mean", 7.0), ("none", "evaluation/metric", 1.0),
    ):  # fmt: skip
        await declare(live_run.world, name, series, value)
    await declare(live_run.world, "low", "loss", 1.0, AT_MOST)

    async def refuse(*_: object) -> None:
        raise AssertionError("the run is summarised anew")

    monkeypatch.setattr(summaries, "_add_all", refuse)
    await summariser.tick()
    found = await read(live_run.database, run)
    assert {name: at for name, (at, _, _) in found.items()} == {
        "two": 2, "five": 5, "seven": 4, "low": 1,
    }  # fmt: skip
    assert found["five"][2] == found["two"][2] + 3.0
    await live_run.send(records.make_points(run, "loss", [100]))
    await summariser.tick()
    assert (await read(live_run.database, run))["never"][0] == 100


@both_databases
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
    monkeypatch.setattr(thresholds, "MAX_THRESHOLDS", 1)
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


async def test_experiments_have_the_median_over_their_runs(listed: World) -> None:
    await declare(listed, "four", "evaluation/mean", 4)
    await Summariser(listed.database).tick()
    columns = ("reached.four", "reached.four.seconds")
    counted = (*columns, "reached.four.runs")
    dqn, ppo = await list_experiments(listed, "", sort="reached.four", columns=counted)
    runs = await list_runs(listed, "agent:dqn", columns=columns)
    for column in columns:
        values = [one.values[column] for one in runs]
        assert dqn.values[column] == sum(map(float, values)) / 2  # type: ignore[arg-type]
        assert ppo.values[column] is None
    assert (dqn.values["reached.four.runs"], ppo.values["reached.four.runs"]) == (2, 1)
    (found,) = await list_experiments(listed, "reached.four>0")
    assert found.id == dqn.id
    with pytest.raises(InvalidError) as caught:
        await list_runs(listed, "reached.fou>0")
    assert "did you mean four?" in str(caught.value)
    with pytest.raises(InvalidError, match="is no field of this list"):
        await list_runs(listed, "reached.four.runs>0")


@pytest.mark.parametrize("few", [3_000, 0])
async def test_thresholds_and_series_may_have_the_names_of_fields(
    listed: World, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lists, "FEW", few)
    names = ("agent", "env", "name", "state", "project", "created")
    for name in names:
        await declare(listed, name, "evaluation/mean", 4)
    await Summariser(listed.database).tick()
    by_series = "evaluation/mean.best"
    for name in names:
        key = f"reached.{name}"
        for sort in (key, by_series):
            reached = await name_runs(listed, f"{key}>0 agent:dqn {by_series}>0", sort=sort)
            assert sorted(reached) == ["dqn-0", "dqn-1"], key
            lacking = await name_runs(listed, f"-{key}>0 env:~Cart", sort=sort, limit=1)
            assert lacking == ["ppo-1"], key
        ordered = await name_runs(listed, sort=f"-{key}", limit=1)
        assert (ordered[0], ordered[-1]) == ("dqn-0", "ppo-1")
        first, _ = await list_experiments(listed, "", sort=key)
        assert first.agent == "dqn"
    worker = (await listed.register(name="other", slots=2)).worker_id
    experiment, _ = await listed.submit(
        make_definition(agent={"name": "dqn", "gamma": 0.5}), seeds=(3, 4)
    )
    for slot, job in enumerate(await listed.list_jobs(experiment_id=experiment.id)):
        points = records.make_points("", "agent", [1], [float(slot)])
        await train(listed, job, (worker, slot), [points])
    await Summariser(listed.database).tick()
    for sort in ("series.agent", "-created", by_series):
        assert await name_runs(listed, "series.agent>0 agent:dqn", sort=sort) == ["dqn-4"]
    assert await name_runs(listed, "series.agent>=0", sort="series.agent") == ["dqn-3", "dqn-4"]


async def test_runs_that_have_not_reached_a_threshold_come_last_in_the_median(
    world: World,
) -> None:
    await declare(world, "low", "loss", 0, AT_MOST)
    await declare(world, "other", "loss", 1, AT_MOST)
    chooser = random.Random(7)
    medians: dict[str, float | None] = {}
    counts: dict[str, int] = {}
    for runs, reached in [(n, k) for n in range(1, 6) for k in range(n + 1)]:
        document = make_definition(loop={"env_steps": 1_000 * runs + reached})
        experiment, _ = await world.submit(document, seeds=[*range(runs)])
        ids = [job.run_ids[0] for job in await world.list_jobs(experiment_id=experiment.id)]
        steps = {run_id: chooser.randint(1, 99) for run_id in chooser.sample(ids, reached)}
        await cross(world, "low", steps)
        await cross(world, "other", dict.fromkeys(ids, 1))
        median = statistics.median(steps.get(run_id, math.inf) for run_id in ids)
        medians[experiment.id] = median if median < math.inf else None
        counts[experiment.id] = reached
    columns = ("reached.low", "reached.low.seconds", "reached.low.runs")
    every = await list_experiments(world, "", columns=columns)
    assert {one.id: one.values["reached.low"] for one in every} == medians
    assert {one.id: one.values["reached.low.runs"] for one in every} == counts
    for one in every:
        median = medians[one.id]
        assert one.values["reached.low.seconds"] == (None if median is None else median / 2)
    for sort, sign in (("reached.low", 1), ("-reached.low", -1)):
        ordered = [medians[one.id] for one in await list_experiments(world, "", sort)]
        known = [median for median in ordered if median is not None]
        assert known == sorted(known, key=lambda median: sign * median)
        assert all(median is None for median in ordered[len(known) :])
    by_count = await list_experiments(world, "", "-reached.low.runs")
    assert [counts[one.id] for one in by_count] == sorted(counts.values(), reverse=True)
    early = await list_experiments(world, "reached.low<=40 reached.low.runs>=2")
    assert {one.id for one in early} == {
        key
        for key, median in medians.items()
        if median is not None and median <= 40 and counts[key] >= 2
    }


async def cross(world: World, name: str, steps: Mapping[str, int]) -> None:
    """Stores first crossings of a threshold as the summariser does."""
    async with world.database.write() as session:
        query = select(ThresholdRow.id).where(ThresholdRow.name == name)
        threshold_id = await session.scalar(query)
        session.add_all(
            ThresholdCrossingRow(
                threshold_id=threshold_id, run_id=run_id, env_step=step, wall=0.0, seconds=step / 2
            )
            for run_id, step in steps.items()
        )


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
