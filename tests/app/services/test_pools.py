"""Unknown pools are refused with a list of the existing pools.

A pool whose workers are all offline still exists.
"""

import pytest

from app.domain.errors import InvalidError
from palestra.contract.names import Schedule
from palestra.contract.states import JobState
from tests.support.server_fixture import World, pass_time


async def test_the_default_pool_is_there_before_any_worker(world: World) -> None:
    assert (await world.one_job()).state is JobState.QUEUED


async def test_a_misspelt_pool_is_refused_at_submission(world: World) -> None:
    await world.register(name="w2", pool="gpu-lab")
    with pytest.raises(
        InvalidError, match=r"did you mean gpu-lab.* pools are: default, gpu-lab"
    ) as refused:
        await world.submit(pool="gpulab")
    assert (refused.value.code, refused.value.pointer) == ("unknown_pool", "/options/pool")
    with pytest.raises(InvalidError, match=r"in the pool zzz\. The pools are: default, gpu-lab"):
        await world.submit(pool="zzz")
    assert await world.jobs() == []


async def test_a_misspelt_pool_is_refused_for_a_job_on_a_run(world: World) -> None:
    job = await world.one_job()
    with pytest.raises(InvalidError) as refused:
        await world.add_job(job.run_ids[0], Schedule.TEST, pool="defualt")
    assert (refused.value.code, refused.value.pointer) == ("unknown_pool", "/pool")
    assert "did you mean default?" in refused.value.detail


async def test_a_pool_whose_workers_are_all_offline_exists(world: World) -> None:
    await world.register(pool="gpu-lab")
    pass_time(86_400)
    assert (await world.one_job(pool="gpu-lab")).state is JobState.QUEUED
