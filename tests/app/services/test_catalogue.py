"""Definitions that name registered parts: submission, claim, and changed code on the workers."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from app.domain.errors import ConflictError, InvalidError
from app.services.curves import curves, series
from app.services.experiments.submission import submit as submit_definition
from app.services.jobs import job_creation
from app.services.offers import check_definition
from palestra.contract.catalogue import Catalogue
from palestra.contract.code import BuiltinCode, GitCode
from palestra.contract.definition import read_definition
from palestra.contract.identity import compute_experiment_id
from palestra.contract.job_options import JobRequest
from palestra.contract.queries import SeriesQuery
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import (
    TINY_CODE,
    WALK_CODE,
    World,
    make_catalogue,
    make_catalogue_with_walk,
    make_definition,
    make_submission,
    make_supervised_definition,
)


def make_tiny_definition(**changes: Any) -> dict[str, Any]:
    return make_definition(agent={"name": "tiny", "parameters": {}}, **changes)


async def test_a_registered_agent_is_stored_with_its_code_and_its_defaults(world: World) -> None:
    worker = await world.register()
    experiment, created = await world.submit(make_tiny_definition())
    assert created
    assert experiment.agent == "tiny"
    assert experiment.definition.model_dump(mode="json")["agent"] == {
        "name": "tiny",
        "parameters": {"rate": 0.5},
    }
    assert experiment.code.model_dump(mode="json") == TINY_CODE
    assert (
        experiment.id
        == compute_experiment_id(experiment.definition, experiment.code)
        != compute_experiment_id(experiment.definition, BuiltinCode())
    )
    again, created = await world.submit(
        make_definition(agent={"name": "tiny", "parameters": {"rate": 0.5}})
    )
    assert (again.id, created) == (experiment.id, False)
    (job,) = await world.list_jobs()
    order = (await world.start(job.id, worker.worker_id)).work_order
    assert (order.code, order.definition) == (experiment.code, experiment.definition)


async def test_an_agent_that_no_worker_offers_is_refused(world: World) -> None:
    with pytest.raises(InvalidError) as refused:
        await world.submit(make_tiny_definition())
    assert (refused.value.code, refused.value.pointer) == (
        "unknown_agent",
        "/definition/agent/name",
    )
    assert await world.list_jobs() == []


async def test_new_code_makes_a_new_experiment_and_refuses_jobs_of_the_old_one(
    world: World,
) -> None:
    await world.register()
    first, _ = await world.submit(make_tiny_definition())
    (job,) = await world.list_jobs()
    newer = make_catalogue()
    newer["agents"][2]["code"] = {**TINY_CODE, "digest": "8" * 64}
    await world.register(catalogue=newer)
    second, created = await world.submit(make_tiny_definition())
    assert created
    assert second.id != first.id
    with pytest.raises(InvalidError) as refused:
        async with world.database.write() as session:
            await job_creation.submit(
                session,
                world.admin,
                job.run_ids[0],
                JobRequest.model_validate_json('{"schedule": "train"}'),
            )
    assert refused.value.code == "code_mismatch"


async def test_a_worker_without_the_distribution_leaves_the_job_to_one_that_has_it(
    world: World,
) -> None:
    bare = {**make_catalogue(), "agents": make_catalogue()["agents"][:2], "model_functions": []}
    without = await world.register(name="without", catalogue=bare)
    having = await world.register(name="having")
    await world.submit(make_tiny_definition(), seeds=[0, 1])
    first, second = await world.list_jobs()
    with pytest.raises(
        ConflictError, match="Another worker of the pool has what this job needs"
    ) as refused:
        await world.start(first.id, without.worker_id)
    assert refused.value.code == "does_not_fit"
    await world.start(first.id, having.worker_id)
    await world.register(name="having", catalogue=bare)
    assert (await world.start(second.id, without.worker_id)).work_order.code.kind == "entrypoint", (
        "nobody has it: the worker tells why"
    )


async def test_a_worker_without_an_extra_leaves_the_job_to_one_that_has_it(world: World) -> None:
    algorithms = {"name": "sb3", "action_spaces": ["discrete", "box"]}
    without = await world.register(name="without")
    having = await world.register(
        name="having",
        catalogue={**make_catalogue(), "agents": [*make_catalogue()["agents"], algorithms]},
    )
    await world.submit(make_definition(agent={"name": "sb3", "algorithm": "PPO"}))
    (job,) = await world.list_jobs()
    with pytest.raises(ConflictError, match="Another worker of the pool has what this job needs"):
        await world.start(job.id, without.worker_id)
    await world.start(job.id, having.worker_id)


async def test_a_registered_agent_that_cannot_act_in_the_environment_is_refused(
    world: World,
) -> None:
    await world.register()
    with pytest.raises(InvalidError) as refused:
        await world.submit(make_tiny_definition(env={"id": "Pendulum-v1"}))
    assert refused.value.code == "action_space_mismatch"


@pytest.mark.parametrize(("algorithm", "fits"), [("PPO", True), ("SAC", True), ("DQN", False)])
def test_an_algorithm_of_stable_baselines3_is_judged_by_its_own_action_spaces(
    algorithm: str, fits: bool
) -> None:
    document = {
        **make_definition(env={"id": "Pendulum-v1"}),
        "agent": {"name": "sb3", "algorithm": algorithm},
    }
    offered = Catalogue.model_validate_json(
        json.dumps(
            {
                "agents": [{"name": "sb3", "action_spaces": ["discrete", "box"]}],
                "environments": [
                    {
                        "id": "Pendulum-v1",
                        "observation_space": {"kind": "box"},
                        "action_space": {"kind": "box", "shape": [1]},
                    }
                ],
            }
        )
    )
    words = r"DQN of Stable-Baselines3 needs Discrete actions, the environment has Box\(1\)"
    with nullcontext() if fits else pytest.raises(InvalidError, match=words):
        check_definition(read_definition(json.dumps(document)), offered, "default")  # type: ignore[arg-type]


async def test_a_schedule_that_no_worker_of_the_pool_supports_is_refused(world: World) -> None:
    await world.register(catalogue={**make_catalogue(), "schedules": ["train", "evaluate"]})
    with pytest.raises(
        InvalidError,
        match=r"No worker of the pool default does test\. Choose one of evaluate, train",
    ) as refused:
        await world.submit(schedule="test")
    assert refused.value.code == "unsupported_schedule"


async def test_a_supervised_experiment_shows_its_model_function_and_its_input(world: World) -> None:
    worker = await world.register()
    experiment, created = await world.submit(make_supervised_definition())
    assert created
    assert (experiment.kind, experiment.agent, experiment.env) == ("supervised", "mlp", "rows")
    (job,) = await world.list_jobs()
    order = (await world.start(job.id, worker.worker_id)).work_order
    assert order.definition.kind == "supervised"
    run = await world.run(order.runs[0].run_id)
    assert run.progress.fraction == 0.0


async def test_changed_environment_code_makes_another_experiment(
    world: World,
) -> None:
    """Jobs of the old experiment are refused, and go to a worker that still has the old code."""
    old = await world.register(name="old", catalogue=make_catalogue_with_walk())
    first, _ = await world.submit(make_definition(env={"id": "tiny/Walk-v0"}), seeds=[0, 1])
    assert first.code.model_dump(mode="json") == {"kind": "builtin", "environment": WALK_CODE}
    changed = make_catalogue_with_walk()
    changed["environments"][-1]["code"] = {**WALK_CODE, "digest": "6" * 64}
    new = await world.register(name="new", catalogue=changed)
    one, two = await world.list_jobs()
    for lacking in (new, await world.register(name="bare", catalogue=make_catalogue())):
        with pytest.raises(
            ConflictError, match="Another worker of the pool has what this job needs"
        ) as refused:
            await world.start(one.id, lacking.worker_id)
        assert refused.value.code == "does_not_fit"
    order = (await world.start(one.id, old.worker_id)).work_order
    assert order.code == first.code
    second, created = await world.submit(make_definition(env={"id": "tiny/Walk-v0"}))
    assert (created, second.id != first.id) == (True, True)
    await world.register(name="old", catalogue=changed)
    with pytest.raises(InvalidError) as mismatch:
        async with world.database.write() as session:
            await job_creation.submit(
                session,
                world.admin,
                two.run_ids[0],
                JobRequest.model_validate_json('{"schedule": "train"}'),
            )
    assert (mismatch.value.code, mismatch.value.pointer) == ("code_mismatch", "/code/environment")


async def test_an_environment_named_by_its_module_is_stored_by_its_id(world: World) -> None:
    await world.register(catalogue=make_catalogue_with_walk())
    experiment, _ = await world.submit(make_definition(env={"id": "loose:tiny/Walk-v0"}))
    assert experiment.env == "tiny/Walk-v0"
    assert (await world.submit(make_definition(env={"id": "tiny/Walk-v0"})))[0].id == experiment.id


async def test_an_unknown_environment_is_refused_with_the_ways_to_add_one(
    world: World,
) -> None:
    await world.register(catalogue=make_catalogue_with_walk())
    with pytest.raises(
        InvalidError, match=r"did you mean tiny/Walk-v0\?.*install the package that registers it"
    ) as refused:
        await world.submit(make_definition(env={"id": "tiny/Walk-v1"}))
    assert (refused.value.code, refused.value.pointer) == (
        "unknown_environment",
        "/definition/env/id",
    )


async def test_unsupported_observation_spaces_are_refused_at_submission(world: World) -> None:
    words = {
        "id": "tiny/Words-v0",
        "observation_space": {"kind": "other"},
        "action_space": {"kind": "discrete", "n": 2},
    }
    await world.register(catalogue={**make_catalogue(), "environments": [words]})
    with pytest.raises(
        InvalidError, match="observation space of this environment is of a kind that no agent takes"
    ) as refused:
        await world.submit(make_definition(env={"id": "tiny/Words-v0"}))
    assert (refused.value.code, refused.value.pointer) == (
        "observation_space_mismatch",
        "/definition/env/id",
    )


async def test_a_stored_experiment_with_work_tree_code_remains_usable(
    world: World,
) -> None:
    """The option `--code` is refused, but experiments that it created can be read and trained."""
    worker = await world.register()
    stored = make_submission().model_copy(update={"code": GitCode(kind="git", head="a" * 40)})
    async with world.database.write() as session:
        experiment, _ = await submit_definition(session, world.admin, stored)
    assert experiment.code == stored.code
    (job,) = await world.list_jobs()
    order = (await world.start(job.id, worker.worker_id)).work_order
    assert order.code == stored.code
    async with world.database.write() as session:
        request = JobRequest.model_validate_json('{"schedule": "continuous_eval"}')
        assert (
            await job_creation.submit(session, world.admin, job.run_ids[0], request)
        ).schedule == "continuous_eval"


async def test_evaluation_metrics_and_scores_are_stored_as_curves(
    live_run: AttemptWithStore,
) -> None:
    for update, loss in ((10, 0.5), (20, "NaN")):
        record = records.make_evaluation(live_run.run_id, update, -0.5, update=update)
        await live_run.send({**record, "metrics": {"loss": loss, "accuracy": update / 20}})
    shown = await live_run.list_evaluations(superseded=False)
    assert [one.metrics["accuracy"] for one in shown] == [0.5, 1.0]
    async with live_run.database.read() as session:
        listed = (
            await series.list_for_run(
                session, live_run.world.admin, live_run.run_id, after="", limit=500
            )
        ).items
    assert {
        one.name: (one.points, one.nonfinite)
        for one in listed
        if one.name.startswith("evaluation/")
    } == {
        "evaluation/accuracy": (2, 0),
        "evaluation/loss": (2, 1),
        "evaluation/mean": (2, 0),
    }
    wanted = {
        "select": [{"run_id": live_run.run_id, "series": "evaluation/accuracy"}],
        "x": "update",
        "buckets": 2,
    }
    answer = await curves.query(
        live_run.database, live_run.world.admin, SeriesQuery.model_validate_json(json.dumps(wanted))
    )
    assert answer.series[0].mean == [0.5, 1.0]
