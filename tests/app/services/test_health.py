"""Findings about a run of the database, from its series and evaluations."""

import pytest

from app.db.engine import Database
from app.domain.errors import NotFoundError
from app.services.curves import health
from app.services.telemetry import batches
from palestra.contract.health import HealthView
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_catalogue, make_definition


async def judge(live_run: AttemptWithStore) -> HealthView:
    return await health.judge(live_run.database, live_run.world.admin, live_run.run_id)


async def test_a_run_without_data_has_no_findings(live_run: AttemptWithStore) -> None:
    found = await judge(live_run)
    assert (found.run_id, found.findings, found.series) == (live_run.run_id, [], [])
    with pytest.raises(NotFoundError):
        await health.judge(live_run.database, live_run.world.admin, "run_" + "0" * 26)


async def test_findings_name_number_place_and_remedy(live_run: AttemptWithStore) -> None:
    run = live_run.run_id
    steps = list(range(1_000, 21_000, 1_000))
    await live_run.send(
        records.make_points(run, "q/mean", steps, [40.0 * step / 1_000 for step in steps]),
        records.make_points(run, "reward/largest", steps, [1.0] * len(steps)),
        records.make_points(
            run, "loss/td", steps, ["NaN" if step == 9_000 else 0.1 for step in steps]
        ),
        *(records.make_evaluation(run, step, 200.0 if step < 11_000 else 9.0) for step in steps),
    )
    found = await judge(live_run)
    assert found.series == ["loss/td", "q/mean", "reward/largest"]
    by_rule = {one.rule: one for one in found.findings}
    assert list(by_rule) == [
        "not_finite",
        "values_above_rewards",
        "return_fell",
        "no_episode_finished",
    ]
    assert "loss/td has 1 values that are not finite" in by_rule["not_finite"].sentence
    assert abs(by_rule["not_finite"].env_step - 9_000) <= 64
    assert by_rule["values_above_rewards"].sentence.endswith("rewards of at most 1 allow 100.")
    assert "from 200 around 10000 env_steps to 9" in by_rule["return_fell"].sentence
    assert all(one.remedy for one in found.findings)


@pytest.mark.parametrize(("value", "is_found"), [(700.0, False), (800.0, True)])
async def test_without_discount_the_registered_episode_limit_bounds_values(
    world: World, database: Database, value: float, is_found: bool
) -> None:
    catalogue = make_catalogue()
    for one in catalogue["environments"]:
        one["max_episode_steps"] = 500 if one["id"] == "CartPole-v1" else 200
    registered = await world.register(catalogue=catalogue)
    agent = {"name": "dqn", "gamma": 1.0}
    job = await world.submit_one_job(document=make_definition(agent=agent))
    order = (await world.start(job.id, registered.worker_id)).work_order
    run, steps = order.runs[0].run_id, list(range(1_000, 9_000, 1_000))
    content = [
        records.make_points(run, "q/mean", steps, [value] * len(steps)),
        records.make_points(run, "reward/largest", steps, [1.0] * len(steps)),
    ]
    async with database.write() as session:
        await batches.take(session, records.make_delivery(order.attempt_id, 1, content))
    found = await health.judge(database, world.admin, run)
    assert [one.rule for one in found.findings] == ["values_above_rewards"] * is_found
    if is_found:
        assert found.findings[0].sentence.endswith("rewards of at most 1 allow 500.")
