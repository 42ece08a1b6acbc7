"""The query language of curves: groups by fields, columns, smoothing, errors and their codes."""

import json
from typing import Any

import numpy as np
import pytest

from app.db.engine import Database
from app.domain.errors import DomainError, NotFoundError
from app.services.curves import answers, curves
from palestra.contract.queries import SeriesQuery, SeriesResult
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_definition
from tests.support.training import make_evaluations, train


def read_query(**body: Any) -> SeriesQuery:
    return SeriesQuery.model_validate_json(json.dumps(body))


async def ask(world: World, **body: Any) -> SeriesResult:
    return await curves.query(world.database, world.admin, read_query(**body))


async def refuse(world: World, **body: Any) -> tuple[str, str | None, str]:
    with pytest.raises(DomainError) as caught:
        await ask(world, **body)
    return caught.value.code, caught.value.pointer, caught.value.detail


async def train_two_experiments(world: World) -> list[list[str]]:
    """Trains two seeds with one learning rate and one with another; returns the runs of each."""
    registered = await world.register(slots=3)
    slow = make_definition()
    slow["agent"] = {**slow["agent"], "gamma": 0.5}
    await world.submit(make_definition(), seeds=(0, 1))
    first = await world.list_jobs()
    await world.submit(slow, seeds=(0,))
    jobs = [
        *first,
        *(job for job in await world.list_jobs() if job.id not in {j.id for j in first}),
    ]
    means = ((1.0, 3.0), (3.0, 5.0), (10.0, 20.0))
    runs = [
        await train(
            world,
            job,
            (registered.worker_id, slot),
            make_evaluations(*means[slot]),
            (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE),
        )
        for slot, job in enumerate(jobs)
    ]
    return [runs[:2], runs[2:]]


async def test_runs_are_grouped_by_fields_of_their_definition(world: World) -> None:
    pair, single = await train_two_experiments(world)
    answer = await ask(
        world,
        runs=[*pair, *single],
        names=["evaluation/mean"],
        group_by=["agent.gamma", "agent"],
        show_runs=False,
    )
    assert answer.series == []
    by_gamma = {group.by["agent.gamma"]: group for group in answer.groups}
    assert set(by_gamma) == {0.5, 0.99}
    group = by_gamma[0.99]
    filled = [i for i, n in enumerate(group.n) if n]
    assert (group.run_ids, [group.mean[i] for i in filled]) == (pair, [2.0, 4.0])
    assert [group.stderr[i] for i in filled] == [pytest.approx(1.0)] * 2
    assert group.name.startswith("agent.gamma=0.99, agent=")
    assert [value for value in by_gamma[0.5].mean if value is not None] == [10.0, 20.0]
    assert [value for value in by_gamma[0.5].stderr if value is not None] == []


async def test_experiments_stand_for_all_their_runs(world: World) -> None:
    pair, single = await train_two_experiments(world)
    async with world.database.read() as session:
        from app.db.models import RunRow

        experiments = [
            (await session.get_one(RunRow, run)).experiment_id for run in (pair[0], single[0])
        ]
    answer = await ask(
        world, experiments=experiments, names=["evaluation/mean"], group_by=["experiment"]
    )
    assert {one.run_id for one in answer.series} == {*pair, *single}
    assert {group.by["experiment"]: group.run_ids for group in answer.groups} == {
        experiments[0]: pair,
        experiments[1]: single,
    }
    with pytest.raises(NotFoundError):
        await ask(world, experiments=["no-such-experiment"], names=["evaluation/mean"])


async def test_a_group_is_over_all_data_whatever_is_shown(world: World) -> None:
    pair, single = await train_two_experiments(world)
    grouped = {"names": ["evaluation/mean"], "group_by": ["agent.gamma"]}
    hidden = await ask(world, runs=[*pair, *single], **grouped, show_runs=False)
    shown = await ask(world, runs=[*pair, *single], **grouped)
    assert hidden.groups == shown.groups


async def test_answers_hold_the_columns_and_statistics_that_were_asked(world: World) -> None:
    pair, _ = await train_two_experiments(world)
    answer = await ask(
        world,
        runs=pair,
        names=["evaluation/mean"],
        group_by=["agent"],
        columns=["mean", "n"],
        statistics=["mean", "stderr"],
    )
    (one, _), (group,) = answer.series, answer.groups
    assert len(one.mean) == len(one.n) == len(group.mean) == len(group.stderr) == len(answer.grid)
    assert one.min == one.last == one.nonfinite == group.low == group.median == []
    assert one.points == 2


async def test_the_unit_of_evaluations_puts_those_of_all_seeds_into_one_bucket(
    world: World,
) -> None:
    registered = await world.register(slots=2)
    await world.submit(seeds=(0, 1))
    jobs = await world.list_jobs()
    runs = []
    for slot, (job, lag) in enumerate(zip(jobs, (0, 7), strict=True)):
        sent = [records.make_evaluation("", 1_000 * i + lag, float(i)) for i in (1, 2, 3)]
        runs.append(await train(world, job, (registered.worker_id, slot), sent))
    body: dict[str, Any] = {"runs": runs, "names": ["evaluation/mean"], "group_by": ["agent"]}
    apart = (await ask(world, **body)).groups[0]
    assert [n for n in apart.n if n] == [1] * 6
    together = await ask(world, **body, unit=1_000)
    assert (together.width, together.start, together.end) == (1_000, 1_000, 4_000)
    assert together.grid == [1_000, 2_000, 3_000]
    assert (together.groups[0].n, together.groups[0].mean) == ([2, 2, 2], [1.0, 2.0, 3.0])
    refused = await refuse(world, runs=runs, names=["episode/return"], unit=5)
    assert refused[:2] == ("unit_needs_evaluations", "/unit")


class TestErrors:
    async def test_an_unknown_series_is_refused_with_the_nearest_name(
        self, live_run: AttemptWithStore
    ) -> None:
        world, run = live_run.world, live_run.run_id
        await live_run.send(records.make_points(run, "loss/td", [1]))
        await live_run.send(records.make_evaluation(run, 5, 1.0))
        await live_run.succeed()
        code, pointer, detail = await refuse(world, runs=[run], names=["loss/td", "loss/tdd"])
        assert (code, pointer) == ("unknown_series", "/names/1")
        assert "did you mean loss/td?" in detail
        assert (await refuse(world, select=[{"run_id": run, "series": "los"}]))[1] == (
            "/select/0/series"
        )
        built_in = await ask(world, runs=[run], names=["episode/return", "evaluation/mean"])
        assert [one.points for one in built_in.series] == [0, 1]
        code, _, detail = await refuse(world, runs=[run], names=["evaluation/men"])
        assert (code, "evaluation/mean" in detail) == ("unknown_series", True)

    async def test_a_run_that_has_not_ended_may_get_any_series_later(
        self, live_run: AttemptWithStore
    ) -> None:
        world, run = live_run.world, live_run.run_id
        wanted: dict[str, Any] = {"runs": [run], "names": ["loss/td", "evaluation/accuracy"]}
        for sent in ("nothing", "entropy", "loss/td"):
            if sent != "nothing":
                await live_run.send(records.make_points(run, sent, [1]))
            await live_run.send(records.make_evaluation(run, 5, 1.0))
            answer = await ask(world, **wanted)
            assert [one.points for one in answer.series] == [int(sent == "loss/td"), 0]
        await live_run.succeed()
        assert (await refuse(world, **wanted))[:2] == ("unknown_series", "/names/1")

    async def test_one_live_run_among_ended_ones_may_get_the_series(self, world: World) -> None:
        registered = await world.register(slots=2)
        await world.submit(seeds=(0, 1))
        ended, live = [
            await train(
                world,
                job,
                (registered.worker_id, slot),
                [records.make_points("", "loss", [1])],
                (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE) if slot == 0 else None,
            )
            for slot, job in enumerate(await world.list_jobs())
        ]
        both = await ask(world, runs=[ended, live], names=["entropy"])
        assert [one.points for one in both.series] == [0, 0]
        assert (await refuse(world, runs=[ended], names=["entropy"]))[0] == "unknown_series"

    async def test_groups_without_runs_are_refused(self, live_run: AttemptWithStore) -> None:
        world = live_run.world
        group = {"name": "g", "run_ids": [], "series": "loss"}
        assert (await refuse(world, groups=[group]))[:2] == ("empty_group", "/groups/0/run_ids")
        assert (await refuse(world, group_by=["agent"], names=["loss"]))[0] == "empty_group"
        refused = await refuse(world, group_by=["agent"], runs=[live_run.run_id])
        assert refused[:2] == ("empty_group", "/names")

    async def test_an_unknown_field_is_refused_with_the_nearest_one(
        self, live_run: AttemptWithStore
    ) -> None:
        code, pointer, detail = await refuse(
            live_run.world, runs=[live_run.run_id], names=["loss"], group_by=["env", "agent.gama"]
        )
        assert (code, pointer) == ("unknown_field", "/group_by/1")
        assert "agent.gamma" in detail

    async def test_a_range_without_data_says_where_the_data_is(
        self, live_run: AttemptWithStore
    ) -> None:
        world, run = live_run.world, live_run.run_id
        await live_run.send(records.make_points(run, "loss", [10, 20]))
        behind = await ask(world, runs=[run], names=["loss"], start=21)
        assert behind.series[0].points == 0, "the run may still get points there"
        await live_run.succeed()
        code, pointer, detail = await refuse(world, runs=[run], names=["loss"], start=21)
        assert (code, pointer) == ("range_without_data", "/start")
        assert "from 10 to 20 of env_step" in detail
        gap = await refuse(world, runs=[run], names=["loss"], start=11, end=19)
        assert gap[0] == "range_without_data"
        assert (await refuse(world, runs=[run], names=["loss"], start=2, end=1))[0] == (
            "invalid_range"
        )

    async def test_too_many_curves_are_refused_before_any_is_read(self, world: World) -> None:
        names = [f"s/{i}" for i in range(100)]
        code, _, _ = await refuse(world, runs=[f"run_{i:026}" for i in range(21)], names=names)
        assert code == "query_too_large"


async def test_smoothing_is_debiased_and_follows_the_grid(live_run: AttemptWithStore) -> None:
    values = [4.0, 0.0, 8.0]
    await live_run.send(records.make_points(live_run.run_id, "loss", [0, 1, 3], values))
    body: dict[str, Any] = {"runs": [live_run.run_id], "names": ["loss"]}
    by_bucket = await ask(live_run.world, **body, smoothing={"kind": "ema", "weight": 0.5})
    expected = [4.0, 2 / 1.5, None, (1 + 8) / 1.75]
    assert by_bucket.series[0].smoothed == pytest.approx(expected)
    assert by_bucket.series[0].mean == [4.0, 0.0, None, 8.0], "the mean itself is not replaced"
    by_distance = await ask(
        live_run.world, **body, smoothing={"kind": "time_weighted", "half_life": 1.0}
    )
    assert by_distance.series[0].smoothed == pytest.approx([4.0, 2 / 1.5, None, (0.5 + 8) / 1.375])


async def test_the_arrow_stream_holds_what_the_json_does(world: World) -> None:
    import pyarrow as pa

    pair, _ = await train_two_experiments(world)
    wanted = read_query(runs=pair, names=["evaluation/mean"], group_by=["agent"])
    found = (await curves.read(world.database, world.admin, wanted)).answer
    assert found is not None
    expected = json.loads(answers.encode_json(found))
    table = pa.ipc.open_stream(answers.encode_arrow(found)).read_all()
    head = json.loads(table.schema.metadata[b"palestra"])
    for name in ("x", "grid", "start", "end", "width", "cursor"):
        assert head[name] == expected[name]
    rows = table.to_pylist()
    for row, one in zip(rows, [*expected["series"], *expected["groups"]], strict=True):
        assert row["run_id"] == one.get("run_id")
        assert row["group"] == one.get("name")
        for name in ("mean", "min", "max", "n"):
            assert row[name] == one[name]


async def test_only_answers_about_ended_runs_have_a_tag(world: World, database: Database) -> None:
    pair, _ = await train_two_experiments(world)
    wanted = read_query(runs=pair, names=["evaluation/mean"])
    first = await curves.read(database, world.admin, wanted)
    assert first.tag is not None
    again = await curves.read(database, world.admin, wanted, [first.tag])
    assert (again.answer, again.tag) == (None, first.tag)
    other = read_query(runs=pair, names=["evaluation/max"])
    assert (await curves.read(database, world.admin, other, [first.tag])).answer is not None


async def test_a_live_run_has_no_tag(live_run: AttemptWithStore) -> None:
    wanted = read_query(runs=[live_run.run_id], names=["episode/return"])
    found = await curves.read(live_run.database, live_run.world.admin, wanted)
    assert found.tag is None


def test_statistics_of_many_runs_equal_those_of_numpy() -> None:
    from app.metrics.groups import summarise

    means = np.random.default_rng(3).normal(scale=1e6, size=(50, 400))
    means[np.random.default_rng(4).random(means.shape) < 0.2] = np.nan
    found = summarise(means)
    counts = (~np.isnan(means)).sum(axis=0)
    bound = 1e-9 * np.nansum(np.abs(means), axis=0)
    for name, expected in {
        "mean": np.nanmean(means, axis=0),
        "median": np.nanmedian(means, axis=0),
        "stdev": np.nanstd(means, axis=0, ddof=1),
        "stderr": np.nanstd(means, axis=0, ddof=1) / np.sqrt(counts),
        "min": np.nanmin(means, axis=0),
        "max": np.nanmax(means, axis=0),
    }.items():
        assert bool(np.all(np.abs(getattr(found, name) - expected) <= bound)), name
    assert found.n.tolist() == counts.tolist()


async def test_groups_of_a_filter_are_over_all_that_it_finds(world: World) -> None:
    pair, single = await train_two_experiments(world)
    grouped: dict[str, Any] = {
        "filter": "agent.gamma:0.99,0.5",
        "names": ["evaluation/mean"],
        "group_by": ["agent.gamma"],
        "show_runs": False,
    }
    found = await ask(world, **grouped)
    assert found.series == []
    assert {group.by["agent.gamma"]: group.run_ids for group in found.groups} == {
        0.99: pair,
        0.5: single,
    }
    drawn = await ask(world, **grouped, select=[{"run_id": pair[1], "series": "evaluation/mean"}])
    assert [one.run_id for one in drawn.series] == pair[1:]
    assert drawn.groups == found.groups, "the runs that are drawn do not change the groups"
    nothing = {**grouped, "filter": "agent:none"}
    assert (await refuse(world, **nothing))[:2] == ("empty_group", "/filter")
    assert (await refuse(world, names=["x"], filter="agnt:dqn"))[:2] == (
        "unknown_filter_field",
        "/filter",
    )
