"""Evaluations whose actions are drawn from the policy: who may ask for them, what they count."""

from typing import Any

import pytest

from app.domain.errors import ConflictError, InvalidError
from palestra.contract.job_options import JobRequest
from palestra.contract.names import EvaluationSource, Schedule
from palestra.contract.work_order import (
    OLDEST_WORK_ORDER,
    WORK_ORDER_VERSION,
    WORK_ORDER_VERSIONS,
)
from tests.app.services.continuous_evaluations import send_evaluation, start_continuous_eval
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_definition, make_supervised_definition


async def test_a_definition_of_a_deterministic_policy_is_refused(world: World) -> None:
    await world.register()
    with pytest.raises(ValueError, match="the policy of dqn is deterministic"):
        await world.submit(make_definition(evaluation={"policy": "both"}))


@pytest.mark.parametrize("schedule", [Schedule.EVALUATE, Schedule.CONTINUOUS_EVAL])
@pytest.mark.parametrize("policy", ["stochastic", "both"])
async def test_a_deterministic_policy_is_refused_when_it_is_queued(
    live_run: AttemptWithStore, schedule: Schedule, policy: str
) -> None:
    await live_run.write_snapshot(100)
    with pytest.raises(InvalidError, match="policy of dqn is deterministic") as refused:
        await live_run.world.add_job(live_run.run_id, schedule, evaluate={"policy": policy})
    assert refused.value.pointer == "/evaluate/policy"


@pytest.mark.parametrize("policy", ["greedy", "stochastic"])
async def test_a_supervised_run_has_no_policy(world: World, policy: str) -> None:
    await world.register()
    job = await world.submit_one_job(document=make_supervised_definition())
    with pytest.raises(InvalidError, match="A supervised run has no policy"):
        await world.add_job(job.run_ids[0], Schedule.CONTINUOUS_EVAL, evaluate={"policy": policy})


@pytest.mark.parametrize("policy", [None, "greedy", "both"])
async def test_the_work_order_has_the_policy(world: World, policy: str | None) -> None:
    registered = await world.register(slots=2, work_order_versions=WORK_ORDER_VERSIONS)
    job = await world.submit_one_job(document=make_definition(agent={"name": "ppo"}))
    await world.start(job.id, registered.worker_id)
    following = await world.add_job(
        job.run_ids[0], Schedule.CONTINUOUS_EVAL, evaluate={"policy": policy}
    )
    order = (await world.start(following.id, registered.worker_id, slot=1)).work_order
    assert order.runs[0].policy == policy
    assert order.version == (OLDEST_WORK_ORDER if policy is None else WORK_ORDER_VERSION)


async def test_workers_of_the_version_before_execute_greedy_definitions_alone(
    world: World,
) -> None:
    worker = await world.register(slots=2, work_order_versions=(1, OLDEST_WORK_ORDER))
    agent = {"name": "ppo"}
    plain = await world.submit_one_job(document=make_definition(agent=agent))
    order = (await world.start(plain.id, worker.worker_id)).work_order
    assert (order.version, order.definition.schema_version) == (OLDEST_WORK_ORDER, 2)
    drawn = await world.submit_one_job(
        document=make_definition(agent=agent, evaluation={"policy": "both"})
    )
    with pytest.raises(ConflictError, match="another version"):
        await world.start(drawn.id, worker.worker_id, slot=1)
    newer = await world.register(name="newer", work_order_versions=WORK_ORDER_VERSIONS)
    order = (await world.start(drawn.id, newer.worker_id)).work_order
    assert (order.version, order.definition.schema_version) == (WORK_ORDER_VERSION, 3)


async def test_scores_do_not_follow_drawn_actions(live_run: AttemptWithStore) -> None:
    snapshot = await live_run.write_snapshot(100)
    one = await start_continuous_eval(live_run)
    await send_evaluation(one, snapshot, 3.0)
    await send_evaluation(one, snapshot, 90.0, source=EvaluationSource.STOCHASTIC.value)
    run = await live_run.world.run(live_run.run_id)
    assert run.latest_evaluation is not None
    assert run.best_evaluation is not None
    assert (run.latest_evaluation.mean, run.best_evaluation.mean) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("schedule", "is_refused"),
    [
        ("evaluate", False),
        ("continuous_eval", False),
        ("continuous_eval_on_train_data", True),
        ("export", True),
    ],
)
def test_the_policy_is_an_option_of_evaluations(schedule: str, is_refused: bool) -> None:
    document: dict[str, Any] = {"schedule": schedule, "evaluate": {"policy": "stochastic"}}
    if not is_refused:
        assert JobRequest.model_validate(document, strict=False).evaluate.policy == "stochastic"
        return
    with pytest.raises(ValueError, match=r"evaluate\.policy is for the schedules"):
        JobRequest.model_validate(document, strict=False)
