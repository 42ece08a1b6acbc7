"""Estimates of the start of jobs in the database: made, stored, shown and compared."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from app.daemons.start_estimator import StartEstimator
from app.db.clock import now
from app.services.experiments import submission_plan, submission_preview
from app.services.jobs import explanation
from palestra.contract.queue import JobExplanation, StartEstimate, SubmissionPreview
from palestra.contract.states import Cause, JobState, Outcome
from tests.support.server_fixture import World, advance_clock, make_submission

both_databases = pytest.mark.both_databases(
    "Estimates are inserted or replaced by a statement of each database.",
    of=(
        "app.db.upsert",
        "app.db.repositories.start_estimates",
    ),
)


@pytest.fixture
def estimator(world: World) -> StartEstimator:
    return StartEstimator(world.database, period=0.0)


async def read_time(world: World) -> datetime:
    async with world.database.read() as session:
        return await now(session)


async def finish_some(world: World, worker: str, seconds: float, seeds: range) -> None:
    for seed in seeds:
        job = await world.submit_one_job(seeds=[seed])
        attempt = (await world.start(job.id, worker)).work_order.attempt_id
        advance_clock(seconds)
        await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    await world.send_heartbeat(worker)


async def get_estimate(world: World, job_id: str) -> StartEstimate:
    found = (await world.job(job_id)).estimate
    assert found is not None
    return found


async def explain(world: World, job_id: str) -> JobExplanation:
    async with world.database.read() as session:
        return await explanation.explain(session, world.admin, job_id)


async def preview(world: World, **options: object) -> SubmissionPreview:
    async with world.database.write() as session:
        plan = await submission_plan.plan(session, world.admin, make_submission(**options))
    async with world.database.read() as session:
        return await submission_preview.preview(session, plan)


async def test_a_job_starts_after_the_rest_of_the_running_one(
    world: World, estimator: StartEstimator
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await finish_some(world, worker, 600, range(6))
    running = await world.submit_one_job(seeds=[10])
    await world.start(running.id, worker)
    advance_clock(200)
    await world.send_heartbeat(worker)
    first, second = [(await world.submit_one_job(seeds=[seed])).id for seed in (11, 12)]
    assert (await get_estimate(world, first)).unknown is not None
    assert await estimator.tick() == 2
    at = await read_time(world)
    found = await get_estimate(world, first)
    assert found.unknown is None
    assert found.earliest is not None
    assert found.median is not None
    assert found.latest is not None
    assert found.earliest < found.median < found.latest
    assert (found.median - at).total_seconds() == pytest.approx(400, rel=0.15)
    later = (await get_estimate(world, second)).median
    assert later is not None
    assert (later - at).total_seconds() == pytest.approx(1_000, rel=0.15)
    assert (await explain(world, first)).estimate == found
    shown = await preview(world, seeds=[13, 14])
    assert (shown.ahead, shown.jobs) == (2, 2)
    assert shown.first is not None
    assert shown.first.median is not None
    assert (shown.first.median - at).total_seconds() == pytest.approx(1_600, rel=0.15)
    assert shown.last is not None
    assert shown.last.median is not None
    assert shown.last.median > shown.first.median
    assert shown.sentence == "Would start in about 27 minutes, behind 2 jobs."


@both_databases
async def test_the_first_estimate_is_compared_with_the_start(
    world: World, estimator: StartEstimator, passed_seconds: Callable[[], float]
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await finish_some(world, worker, 600, range(4))
    running = await world.submit_one_job(seeds=[10])
    attempt = (await world.start(running.id, worker)).work_order.attempt_id
    waiting = await world.submit_one_job(seeds=[11])
    other = await world.submit_one_job(seeds=[12])
    await estimator.tick()
    made = (await get_estimate(world, waiting.id)).median
    assert made is not None
    advance_clock(580)
    await world.send_heartbeat(worker)
    await estimator.tick()
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    await world.start(waiting.id, worker)
    started = await read_time(world)
    await world.cancel(other.id)
    await estimator.tick()
    last = await world.submit_one_job(seeds=[13])
    accuracy = (await explain(world, last.id)).accuracy
    assert accuracy is not None
    assert (accuracy.starts, accuracy.coverage) == (1, 1.0)
    # The estimate of the time when it was queued counts, not the one just before the start.
    error = abs((started - made).total_seconds())
    assert accuracy.median_error_seconds == pytest.approx(error, abs=passed_seconds())
    assert (await world.job(waiting.id)).estimate is None


async def test_without_two_ended_jobs_of_its_kind_nothing_is_estimated(
    world: World, estimator: StartEstimator
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await finish_some(world, worker, 600, range(1))
    await world.start((await world.submit_one_job(seeds=[10])).id, worker)
    waiting = await world.submit_one_job(seeds=[11])
    await estimator.tick()
    found = await get_estimate(world, waiting.id)
    assert (found.earliest, found.median, found.latest) == (None, None, None)
    assert found.unknown is not None
    assert "fewer than two have ended in this pool" in found.unknown
    shown = await preview(world, seeds=[12])
    assert shown.first is not None
    assert shown.first.unknown == found.unknown
    assert found.unknown in shown.sentence


async def test_a_paused_job_goes_on_where_it_stopped(
    world: World, estimator: StartEstimator
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await finish_some(world, worker, 600, range(6))
    stopped = await world.submit_one_job(seeds=[10])
    attempt = (await world.start(stopped.id, worker)).work_order.attempt_id
    advance_clock(500)
    await world.pause(stopped.id)
    await world.release(attempt, Outcome.PAUSED, Cause.USER)
    await world.resume(stopped.id)
    await world.start(stopped.id, worker, attempt=2)
    waiting = await world.submit_one_job(seeds=[11])
    await world.send_heartbeat(worker)
    await estimator.tick()
    median = (await get_estimate(world, waiting.id)).median
    assert median is not None
    wait = (median - await read_time(world)).total_seconds()
    # Of 600 seconds 500 were used before the pause; the prior widens what is left.
    assert 20 < wait < 250


@both_databases
async def test_estimates_are_forgotten_a_month_after_the_start(
    world: World, estimator: StartEstimator
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await finish_some(world, worker, 600, range(3))
    running = await world.submit_one_job(seeds=[9])
    attempt = (await world.start(running.id, worker)).work_order.attempt_id
    job = await world.submit_one_job(seeds=[10])
    await estimator.tick()
    advance_clock(600)
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    await world.send_heartbeat(worker)
    await world.start(job.id, worker)
    await estimator.tick()
    assert (await world.job(job.id)).state is JobState.RUNNING
    later = await world.submit_one_job(seeds=[11])
    accuracy = (await explain(world, later.id)).accuracy
    assert accuracy is not None
    assert accuracy.starts == 1
    advance_clock(timedelta(days=31).total_seconds())
    await StartEstimator(world.database, period=0.0).tick()
    accuracy = (await explain(world, later.id)).accuracy
    assert accuracy is not None
    assert accuracy.starts == 0
