"""Jobs on packs: how seeds are grouped, and how each run of a pack ends."""

from typing import Any

import pytest

from app.db.models.experiments import RunRow
from app.services.jobs.job_creation import group_into_packs
from palestra.contract.job_options import JobOptions, Resources
from palestra.contract.names import Schedule
from palestra.contract.states import Cause, JobState, Outcome, RunState
from palestra.contract.work_order import Failure, RunEnd
from tests.support.server_fixture import World, make_definition


def make_run_end(
    run_id: str, outcome: Outcome, cause: Cause, failure: Failure | None = None
) -> RunEnd:
    return RunEnd(run_id=run_id, outcome=outcome, cause=cause, failure=failure, env_step=10)


async def get_run_states(world: World, run_ids: Any) -> list[RunState]:
    return [(await world.run(run_id)).state for run_id in run_ids]


@pytest.mark.parametrize(
    ("pack", "sizes"),
    [
        ("off", [1] * 5),
        (2, [2, 2, 1]),
        (3, [3, 2]),
        ("auto", [3, 2]),
    ],
)
async def test_seeds_are_grouped_in_the_order_of_their_names(
    world: World, pack: Any, sizes: list[int]
) -> None:
    await world.register(slots=2)
    await world.submit(make_definition(), seeds=(9, 1, 5, 3, 7), resources={"pack": pack})
    jobs = sorted(await world.list_jobs(), key=lambda job: job.id)
    assert [len(job.run_ids) for job in jobs] == sizes
    seeds = [(await world.run(run_id)).seed for job in jobs for run_id in job.run_ids]
    assert [seed for job in jobs for seed in job.seeds] == seeds
    assert seeds == [9, 1, 5, 3, 7]


@pytest.mark.parametrize(
    ("pack", "agent", "schedule", "sizes"),
    [
        ("auto", "reinforce", "train", [1] * 3),
        (2, "drqn", "train", [2, 1]),
        (2, "dqn", "test", [1] * 3),
    ],
)
def test_pack_sizes_follow_the_option_and_the_agents_default(
    pack: Any, agent: str, schedule: Schedule, sizes: list[int]
) -> None:
    runs = [RunRow(id=str(seed), seed=seed) for seed in range(3)]
    options = JobOptions(schedule=Schedule(schedule), resources=Resources(pack=pack))
    assert [len(one) for one in group_into_packs(runs, options, agent)] == sizes


async def test_each_run_of_a_pack_has_its_own_outcome(world: World) -> None:
    worker = await world.register(slots=2)
    job = await world.submit_one_job(seeds=(0, 1, 2), resources={"pack": 3})
    attempt = (await world.start(job.id, worker.worker_id)).work_order
    failure = Failure(message="The loss was not finite.")
    ends = (
        make_run_end(job.run_ids[0], Outcome.SUCCEEDED, Cause.SUCCESS_SCORE),
        make_run_end(job.run_ids[1], Outcome.FAILED, Cause.DIVERGED, failure),
        make_run_end(job.run_ids[2], Outcome.SUCCEEDED, Cause.BUDGET),
    )
    await world.release(attempt.attempt_id, Outcome.SUCCEEDED, Cause.SUCCESS_SCORE, runs=ends)
    assert (await world.job(job.id)).state is JobState.SUCCEEDED
    assert await get_run_states(world, job.run_ids) == [
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.SUCCEEDED,
    ]
    runs = [await world.run(run_id) for run_id in job.run_ids]
    assert [run.cause for run in runs] == [Cause.SUCCESS_SCORE, Cause.DIVERGED, Cause.BUDGET]
    assert [run.failure for run in runs] == [None, failure, None]
    assert all(run.finished_at is not None for run in runs)


async def test_later_attempts_of_a_pack_leave_out_ended_runs(world: World) -> None:
    worker = await world.register(slots=2)
    job = await world.submit_one_job(seeds=(0, 1, 2), resources={"pack": 3})
    first = (await world.start(job.id, worker.worker_id)).work_order
    await world.pause(job.id)
    ends = (
        make_run_end(job.run_ids[0], Outcome.PAUSED, Cause.USER),
        make_run_end(job.run_ids[1], Outcome.SUCCEEDED, Cause.SUCCESS_SCORE),
        make_run_end(job.run_ids[2], Outcome.PAUSED, Cause.USER),
    )
    await world.release(first.attempt_id, Outcome.PAUSED, Cause.USER, runs=ends)
    assert await get_run_states(world, job.run_ids) == [
        RunState.PAUSED,
        RunState.SUCCEEDED,
        RunState.PAUSED,
    ]
    await world.resume(job.id)
    second = (await world.start(job.id, worker.worker_id, attempt=2)).work_order
    assert [run.run_id for run in second.runs] == [job.run_ids[0], job.run_ids[2]]
    assert await get_run_states(world, job.run_ids) == [
        RunState.RUNNING,
        RunState.SUCCEEDED,
        RunState.RUNNING,
    ]
    await world.release(second.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    assert await get_run_states(world, job.run_ids) == [RunState.SUCCEEDED] * 3
    assert (await world.run(job.run_ids[1])).cause is Cause.SUCCESS_SCORE


async def test_a_run_that_ended_before_another_one_failed_stays_as_it_is(world: World) -> None:
    worker = await world.register(slots=2)
    job = await world.submit_one_job(seeds=(0, 1), resources={"pack": 2})
    attempt = (await world.start(job.id, worker.worker_id)).work_order
    ends = (make_run_end(job.run_ids[0], Outcome.SUCCEEDED, Cause.SUCCESS_SCORE),)
    await world.release(attempt.attempt_id, Outcome.FAILED, Cause.USER_EXCEPTION, runs=ends)
    assert await get_run_states(world, job.run_ids) == [RunState.SUCCEEDED, RunState.FAILED]


async def test_a_report_on_a_run_of_another_job_changes_nothing(world: World) -> None:
    worker = await world.register(slots=2)
    await world.submit(seeds=(0, 1))
    mine, other = await world.list_jobs()
    attempt = (await world.start(mine.id, worker.worker_id)).work_order
    ends = (make_run_end(other.run_ids[0], Outcome.FAILED, Cause.DIVERGED),)
    await world.release(attempt.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, runs=ends)
    assert await get_run_states(world, [mine.run_ids[0], other.run_ids[0]]) == [
        RunState.SUCCEEDED,
        RunState.QUEUED,
    ]
