"""The keys of runs, over more runs than whose series are looked up."""

import pytest
import pytest_asyncio

from app.daemons.summariser import Summariser
from app.domain.errors import InvalidError
from app.services.lists import run_keys
from app.services.projects import thresholds
from palestra.contract.run_lists import RunKeysView
from palestra.contract.thresholds import ThresholdRequest
from tests.support import records
from tests.support.server_fixture import World, make_definition
from tests.support.training import make_evaluations, train

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEEDS = 40


async def list_keys(world: World, text: str = "") -> RunKeysView:
    async with world.database.read() as session:
        return await run_keys.list_keys(session, world.admin, text)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def crowd(module_world: World) -> World:
    """An old run with a series of its own, then one of another agent and `SEEDS` of a third."""
    world = module_world
    worker = (await world.register(slots=3)).worker_id
    first = await world.submit_one_job(document=make_definition(name="old"))
    await train(world, first, (worker, 0), [records.make_points("", "loss/old", [1], [1.0])])
    for slot, agent in enumerate(("ppo", "dqn"), 1):
        document = make_definition(agent={"name": agent, "gamma": 0.9}, loop={"env_steps": 999})
        seeds = range(1 if agent == "ppo" else SEEDS)
        experiment, _ = await world.submit(document, seeds=[*seeds])
        job = (await world.list_jobs(experiment_id=experiment.id))[-1]
        name = f"loss/{agent}"
        content = [records.make_points("", name, [1], [1.0]), *make_evaluations(1.0)]
        await train(world, job, (worker, slot), content)
    await Summariser(world.database).tick()
    return world


async def test_keys_say_that_older_runs_may_have_other_series(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_keys, "SEARCHED", SEEDS - 10)
    every = await list_keys(crowd)
    assert {"loss/old", "loss/ppo", "loss/dqn"} <= set(every.series)
    assert (every.searched_runs, every.is_complete) == (None, True)

    many = await list_keys(crowd, "env:~CartPole")
    assert (many.searched_runs, many.is_complete) == (SEEDS - 10, False)
    assert not {"loss/old", "loss/ppo"} & set(many.series)

    few = await list_keys(crowd, f"seed<{SEEDS - 20} agent.gamma:0.9")
    assert (few.searched_runs, few.is_complete) == (None, True)
    old = await list_keys(crowd, "name:old")
    assert (old.series, old.is_complete) == (("loss/old",), True)


async def test_keys_are_complete_where_no_further_run_can_have_another_series(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_keys, "SEARCHED", SEEDS + 1)
    exact = await list_keys(crowd, "seed>=0")
    assert (exact.searched_runs, exact.is_complete) == (SEEDS + 1, False)
    monkeypatch.setattr(run_keys, "SEARCHED", SEEDS + 2)
    exact = await list_keys(crowd, "seed>=0")
    assert (exact.searched_runs, exact.is_complete) == (None, True)
    assert "loss/old" in exact.series
    # All runs of this agent but the newest are beyond the limit, and all series are known.
    monkeypatch.setattr(run_keys, "SEARCHED", 1)
    ppo = await list_keys(crowd, "agent:ppo")
    assert (ppo.searched_runs, ppo.is_complete) == (None, True)
    assert {"loss/ppo", "evaluation/mean"} <= set(ppo.series)


async def test_keys_of_thresholds_are_their_names(module_world: World) -> None:
    for name in ("solved", "half-way"):
        async with module_world.database.write() as session:
            request = ThresholdRequest(series="evaluation/mean", value=1.0)
            await thresholds.declare(session, module_world.admin, "default", name, request)
    assert (await list_keys(module_world)).thresholds == ("half-way", "solved")
    with pytest.raises(InvalidError, match="did you mean agent"):
        await list_keys(module_world, "agnet:x")
