"""Statistics over runs of the database: groups, scores, and what cannot be compared."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.domain.errors import DomainError, NotFoundError
from app.metrics.statistics.comparisons import SeedAdvice
from app.services.statistics import parts, statistics
from palestra.contract.states import Cause, Outcome
from palestra.contract.statistics import StatisticsQuery, StatisticsResult
from tests.support import records
from tests.support.server_fixture import World, make_definition
from tests.support.training import train

CARTPOLE = {"env": {"id": "CartPole-v1"}, "agent": {"name": "dqn"}}
OTHER_AGENT = {"env": {"id": "CartPole-v1"}, "agent": {"name": "ppo"}}
PENDULUM = {"env": {"id": "Pendulum-v1"}, "agent": {"name": "ppo"}}
BOUNDS = {
    "CartPole-v1": {"random": 0.0, "reference": 100.0},
    "Pendulum-v1": {"random": -1600.0, "reference": -100.0},
}


async def ask(world: World, **body: Any) -> StatisticsResult:
    query = StatisticsQuery.model_validate_json(json.dumps({"group_by": ["agent"], **body}))
    return await statistics.aggregate(world.database, world.admin, query)


async def refuse(world: World, **body: Any) -> tuple[str, str | None, str]:
    with pytest.raises(DomainError) as caught:
        await ask(world, **body)
    return caught.value.code, caught.value.pointer, caught.value.detail


async def train_seeds(
    world: World, document: dict[str, Any], curves: Sequence[Sequence[float]]
) -> list[str]:
    """Trains one seed per curve of evaluations; returns the runs by seed."""
    before = {job.id for job in await world.list_jobs()}
    registered = await world.register(name=f"of-{len(before)}", slots=len(curves))
    await world.submit(make_definition(**document), seeds=tuple(range(len(curves))))
    jobs = [job for job in await world.list_jobs() if job.id not in before]
    return [
        await train(
            world,
            job,
            (registered.worker_id, slot),
            [records.make_evaluation("", 100 * at, mean) for at, mean in enumerate(curve, 1)]
            or [records.make_log("", "no evaluation")],
            (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE),
        )
        for slot, (job, curve) in enumerate(zip(jobs, curves, strict=True))
    ]


async def test_groups_have_scores_aggregates_and_repeatable_intervals(world: World) -> None:
    first = await train_seeds(world, CARTPOLE, [(1.0, 10.0), (2.0, 20.0), (3.0, 60.0)])
    second = await train_seeds(world, OTHER_AGENT, [(9.0, 90.0), (8.0, 80.0), (7.0, 85.0)])
    body: dict[str, Any] = {
        "runs": [*first, *second],
        "parts": ["aggregates", "profile", "improvement", "paired", "efficiency"],
    }
    found = await ask(world, **body)
    one, two = found.groups
    assert (one.name, one.by, one.run_ids) == ("agent=dqn", {"agent": "dqn"}, first)
    assert [(run.seed, run.raw, run.score) for run in one.scores] == [
        (0, 10.0, 10.0),
        (1, 20.0, 20.0),
        (2, 60.0, 60.0),
    ]
    assert one.aggregates["mean"].value == one.aggregates["iqm"].value == 30.0
    assert "optimality_gap" not in one.aggregates
    iqm = one.aggregates["iqm"]
    assert iqm.low is not None
    assert iqm.high is not None
    assert 10.0 <= iqm.low < 30.0 < iqm.high <= 60.0
    (pair,) = found.pairs
    assert pair.improvement is not None
    assert (pair.improvement.value, pair.improvement.high) == (0.0, 0.0)
    assert pair.paired is not None
    assert (pair.pairs, pair.paired.value) == (3, 30.0 - 85.0)
    assert two.advice is not None
    assert (two.advice.rival, two.advice.enough) == ("agent=dqn", True)
    assert one.efficiency is not None
    assert (found.grid[0], found.grid[-1]) == (100, 200)
    assert (one.efficiency.iqm[0], one.efficiency.iqm[-1]) == (2.0, 30.0)
    assert set(one.efficiency.n) == {3}
    assert one.profile is not None
    assert (found.thresholds[0], found.thresholds[-1]) == (10.0, 90.0)
    assert one.profile.share[0] == pytest.approx(2 / 3)
    assert found.notes == ["Intervals are over fewer than 10 seeds: agent=dqn, agent=ppo."]
    assert await ask(world, **body) == found
    other = await ask(world, **body, rng_seed=1)
    assert other.groups[0].aggregates["mean"].value == 30.0
    assert (other.method.rng_seed, found.method.rng_seed) == (1, 0)
    assert other.method.data_hash == found.method.data_hash
    for group, raw in zip(found.groups, ((10.0, 20.0, 60.0), (90.0, 80.0, 85.0)), strict=True):
        (env,) = group.environments
        assert (env.n, env.mean, env.median) == (3, np.mean(raw), np.median(raw))
        assert env.stdev == pytest.approx(np.std(raw, ddof=1), rel=1e-12)


async def test_statistics_of_a_group_do_not_depend_on_the_other_groups(world: World) -> None:
    first = await train_seeds(world, CARTPOLE, [(10.0,), (20.0,), (60.0,)])
    second = await train_seeds(world, OTHER_AGENT, [(90.0,), (80.0,), (85.0,)])
    alone = await ask(world, runs=first)
    both = await ask(world, runs=[*second, *first])
    assert both.groups[1].aggregates == alone.groups[0].aggregates


async def test_scores_are_over_the_last_evaluations_and_their_episodes(world: World) -> None:
    (run,) = await train_seeds(world, CARTPOLE, [(100.0, 4.0, 8.0)])
    rules: list[tuple[dict[str, Any], float, int]] = [
        ({}, 8.0, 1),
        ({"last": 2}, 6.0, 2),
        ({"kind": "area"}, float(np.trapezoid([100.0, 4.0, 8.0]) / 2), 3),
        ({"kind": "max"}, 100.0, 3),
    ]
    for rule, raw, count in rules:
        found = await ask(world, runs=[run], score=rule)
        (score,) = found.groups[0].scores
        assert (score.raw, score.evaluations) == (raw, count)
    assert found.method.score == "best evaluation, a maximum over noisy results"
    assert found.groups[0].aggregates["iqm"].low is None
    assert found.notes == ["No interval is given where there are fewer than 3 scores: agent=dqn."]
    code, pointer, detail = await refuse(world, runs=[run], score={"last": 4})
    assert (code, pointer) == ("missing_evaluations", "/score")
    assert f"{run}: 3 evaluations, 4 needed" in detail


async def test_environments_are_pooled_by_normalised_scores_only(world: World) -> None:
    cart = await train_seeds(world, OTHER_AGENT, [(50.0,), (100.0,)])
    pendulum = await train_seeds(world, PENDULUM, [(-100.0,), (-1600.0,)])
    body: dict[str, Any] = {"runs": [*cart, *pendulum]}
    code, pointer, detail = await refuse(world, **body)
    assert (code, pointer) == ("mixed_environments", "/normalisation")
    assert "CartPole-v1 and Pendulum-v1" in detail
    cells = (await ask(world, **body, parts=[])).groups[0].environments
    assert [(one.environment, one.n, one.mean) for one in cells] == [
        ("CartPole-v1", 2, 75.0),
        ("Pendulum-v1", 2, -850.0),
    ]
    given = {"kind": "given", "references": BOUNDS}
    found = await ask(world, **body, normalisation=given)
    assert [run.score for run in found.groups[0].scores] == [0.5, 1.0, 1.0, 0.0]
    assert found.groups[0].aggregates["mean"].value == 0.625
    assert found.groups[0].aggregates["optimality_gap"].value == 0.375
    scaled = await ask(world, **body, normalisation={"kind": "min_max"})
    assert [run.score for run in scaled.groups[0].scores] == [0.0, 1.0, 1.0, 0.0]

    lacking = {"kind": "given", "references": {"CartPole-v1": BOUNDS["CartPole-v1"]}}
    code, _, detail = await refuse(world, **body, normalisation=lacking)
    assert (code, "of Pendulum-v1" in detail) == ("missing_reference", True)
    table = {"kind": "table", "table": "atari-human-1"}
    assert (await refuse(world, **body, normalisation=table))[0] == "missing_reference"
    wrong = {"kind": "table", "table": "atari-human-2"}
    code, pointer, detail = await refuse(world, **body, normalisation=wrong)
    assert (code, pointer) == ("unknown_table", "/normalisation/table")
    assert "atari-human-1" in detail
    assert (await refuse(world, runs=cart[:1], normalisation={"kind": "min_max"}))[0] == (
        "equal_scores"
    )


async def test_groups_of_different_environments_are_compared_where_both_have_runs(
    world: World,
) -> None:
    cart = await train_seeds(world, OTHER_AGENT, [(50.0,), (100.0,)])
    dqn = await train_seeds(world, CARTPOLE, [(10.0,), (20.0,), (30.0,)])
    pendulum = await train_seeds(world, PENDULUM, [(-100.0,)])
    found = await ask(
        world,
        runs=[*cart, *dqn, *pendulum],
        normalisation={"kind": "given", "references": BOUNDS},
        parts=["improvement", "paired"],
    )
    (pair,) = found.pairs
    assert (pair.environments, pair.pairs) == (["CartPole-v1"], 2)
    assert pair.improvement is not None
    assert pair.improvement.value == 1.0
    assert found.environments == ["CartPole-v1", "Pendulum-v1"]
    assert sum("different" in note for note in found.notes) == 2


async def test_runs_without_evaluations_are_refused_or_left_out_by_name(world: World) -> None:
    trained = await train_seeds(world, CARTPOLE, [(1.0,), ()])
    code, pointer, detail = await refuse(world, runs=trained)
    assert (code, pointer) == ("missing_evaluations", "/score")
    assert f"1 runs have no score; the first is {trained[1]}: 0 evaluations, 1 needed" in detail
    found = await ask(world, runs=trained, score={"missing": "leave_out"})
    assert [one.run_id for one in found.left_out] == [trained[1]]
    assert found.groups[0].run_ids == trained
    assert "Runs left out without a score: 1." in found.notes
    assert (await refuse(world, runs=trained[1:], score={"missing": "leave_out"}))[0] == (
        "empty_group"
    )
    waiting = await train_seeds(world, PENDULUM, [()])
    some = await ask(world, runs=[*trained, *waiting], score={"missing": "leave_out"})
    assert [group.name for group in some.groups] == ["agent=dqn"]
    assert "Groups without a score are left out: agent=ppo." in some.notes
    endless = await train_seeds(world, OTHER_AGENT, [("NaN",), (1e200,)])  # type: ignore[list-item]
    assert (await refuse(world, runs=endless))[0] == "missing_evaluations"


async def test_each_experiment_is_a_group_unless_fields_are_named(world: World) -> None:
    """Regression: a smoke test of the same agent changed the score of its experiments."""
    long = await train_seeds(world, CARTPOLE, [(150.0,), (160.0,)])
    smoke = await train_seeds(world, {**CARTPOLE, "loop": {"env_steps": 1_000}}, [(10.0,)])
    query = StatisticsQuery(runs=(*long, *smoke))
    assert query.group_by == ("experiment",)
    found = await statistics.aggregate(world.database, world.admin, query)
    assert [(group.run_ids, group.environments[0].mean) for group in found.groups] == [
        (long, 155.0),
        (smoke, 10.0),
    ]
    for group in found.groups:
        assert group.environments[0].experiments == 1
        assert group.environments[0].differing_fields == []
    assert not any("pools" in note for note in found.notes)


async def test_a_group_that_pools_experiments_says_which_fields_differ(world: World) -> None:
    documents = [
        CARTPOLE,
        {**CARTPOLE, "loop": {"env_steps": 1_000}, "notes": "a smoke test"},
        {**CARTPOLE, "agent": {"name": "dqn", "gamma": 0.5}, "name": "Other"},
    ]
    runs = [run for one in documents for run in await train_seeds(world, one, [(1.0,), (2.0,)])]
    found = await ask(world, runs=runs, parts=[])
    (group,) = found.groups
    (cell,) = group.environments
    assert (cell.environment, cell.n, cell.experiments) == ("CartPole-v1", 6, 3)
    assert set(cell.differing_fields) == {"agent.gamma", "loop.env_steps"}
    (note,) = [note for note in found.notes if "pools" in note]
    assert note.startswith("agent=dqn pools experiments: 3 in CartPole-v1 (")
    assert "loop.env_steps" in note
    parted = await ask(world, runs=runs, parts=[], group_by=["agent", "loop.env_steps"])
    assert {
        field
        for one in parted.groups
        for cell in one.environments
        for field in cell.differing_fields
    } == {"agent.gamma"}


@pytest.mark.parametrize(
    ("normalisation", "code", "reason"),
    [
        ({"kind": "min_max"}, "equal_scores", "all scores in Pendulum-v1 are the same"),
        (
            {"kind": "given", "references": {"CartPole-v1": BOUNDS["CartPole-v1"]}},
            "missing_reference",
            "there is no reference score of Pendulum-v1",
        ),
    ],
)
async def test_an_environment_without_a_scale_is_refused_or_left_out(
    world: World, normalisation: dict[str, Any], code: str, reason: str
) -> None:
    """Regression: one run in a further environment ended the statistics of all others."""
    cart = await train_seeds(world, OTHER_AGENT, [(50.0,), (100.0,)])
    dqn = await train_seeds(world, CARTPOLE, [(10.0,)])
    (alone,) = await train_seeds(world, PENDULUM, [(-100.0,)])
    body: dict[str, Any] = {"runs": [*cart, *dqn, alone], "normalisation": normalisation}
    refused = await refuse(world, **body)
    assert (refused[0], "Pendulum-v1" in refused[2]) == (code, True)
    left_out = {"missing": "leave_out"}
    found = await ask(world, **body, score=left_out)
    assert {run.run_id for group in found.groups for run in group.scores} == {*cart, *dqn}
    assert [(one.run_id, one.reason) for one in found.left_out] == [(alone, reason)]
    assert f"Pendulum-v1 is left out: {reason}." in found.notes
    parted = await ask(world, **body, score=left_out, group_by=["experiment"])
    (note,) = [note for note in parted.notes if note.startswith("Groups without a score")]
    assert note.count("experiment=") == 1
    only = {**body, "runs": [alone], "score": left_out}
    assert (await refuse(world, **only))[0] == code


async def test_names_come_first_and_fields_that_one_agent_lacks_last(world: World) -> None:
    runs = [
        *await train_seeds(world, {**CARTPOLE, "loop": {"env_steps": 1_000}}, [(1.0,)]),
        *await train_seeds(world, OTHER_AGENT, [(2.0,)]),
    ]
    found = await ask(world, runs=runs, parts=[], group_by=["env"])
    fields = found.groups[0].environments[0].differing_fields
    assert fields[0] == "agent.name"
    assert fields.index("loop.env_steps") < fields.index("agent.clip_range")
    assert fields.index("loop.env_steps") < fields.index("agent.target_update_every")


async def test_what_no_statistic_can_be_made_of_is_refused(world: World) -> None:
    runs = await train_seeds(world, CARTPOLE, [(1.0,)])
    assert (await refuse(world))[:2] == ("empty_group", "/runs")
    empty = [{"name": "g", "run_ids": []}]
    assert (await refuse(world, groups=empty))[:2] == ("empty_group", "/groups/0/run_ids")
    twice = [{"name": "g", "run_ids": runs}] * 2
    assert (await refuse(world, groups=twice))[0] == "repeated_group"
    code, pointer, detail = await refuse(world, runs=runs, group_by=["agnet"])
    assert (code, pointer, "agent" in detail) == ("unknown_field", "/group_by/0", True)
    with pytest.raises(NotFoundError):
        await ask(world, runs=["run_" + "0" * 26])
    with pytest.raises(NotFoundError):
        await ask(world, experiments=["none"])
    many = {"parts": ["efficiency"], "positions": 500, "curve_resamples": 5_000}
    named = [{"name": f"g{i}", "run_ids": runs} for i in range(30)]
    assert (await refuse(world, groups=named, **many))[0] == "query_too_large"


async def test_a_filter_of_the_list_of_runs_finds_the_runs(world: World) -> None:
    dqn = await train_seeds(world, CARTPOLE, [(1.0,), (2.0,)])
    ppo = await train_seeds(world, OTHER_AGENT, [(3.0,), (4.0,)])
    both = await ask(world, filter="env:CartPole-v1")
    assert {group.name: group.run_ids for group in both.groups} == {
        "agent=dqn": dqn,
        "agent=ppo": ppo,
    }
    one = await ask(world, filter="agent:ppo seed:1")
    assert one.groups[0].run_ids == ppo[1:]
    assert (await refuse(world, filter="agent:none"))[:2] == ("empty_group", "/filter")
    assert (await refuse(world, filter="agnt:dqn"))[:2] == ("unknown_filter_field", "/filter")


@pytest.mark.parametrize(
    ("needed", "end"), [(31, ". About 31 would be."), (82_162, ". More than 1,000 would be.")]
)
def test_estimates_of_very_many_seeds_are_no_number(needed: int, end: str) -> None:
    advice = SeedAdvice(rival=1, difference=0.5, width=2.0, enough=False, seeds=needed)
    sentence = parts._describe(advice, ["a", "b"], 4)
    assert sentence.startswith("4 seeds are not enough: the interval is 2 wide")
    assert sentence.endswith(end)
