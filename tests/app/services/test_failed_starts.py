"""Attempts that end before a trainer started: the worker drains, and no job fails for it."""

from collections.abc import Awaitable, Callable

import pytest

from app.services.attempts import endings
from app.services.workers import heartbeats, workers
from palestra.cli.output import describe_worker
from palestra.contract.pools import WorkerView
from palestra.contract.registration import WorkerHeartbeat
from palestra.contract.states import Cause, JobState, Outcome, WorkerState
from palestra.contract.work_order import Failure
from tests.support.server_fixture import World, advance_clock

BROKEN = "The worker could not start the trainer: ModuleNotFoundError: No module named 'torch'"


async def read_worker(world: World, worker_id: str) -> WorkerView:
    async with world.database.read() as session:
        return await workers.get(session, world.admin, worker_id)


async def fail_start(world: World, job_id: str, worker_id: str, number: int = 1) -> None:
    """Claims a job and releases it as one whose trainer could not be started."""
    attempt = (await world.start(job_id, worker_id, attempt=number)).work_order.attempt_id
    failure = Failure(message=BROKEN)
    await world.release(attempt, Outcome.FAILED, Cause.NOT_STARTED, failure=failure)
    advance_clock(15)
    await world.send_heartbeat(worker_id)


async def lose_supervisor(world: World, worker_id: str, attempt_id: str) -> None:
    await world.send_heartbeat(worker_id, dead=[attempt_id])


async def lose_machine(world: World, worker_id: str, attempt_id: str) -> None:
    await world.register(boot_id=f"boot after {attempt_id}")


async def lose_claim(world: World, worker_id: str, attempt_id: str) -> None:
    advance_clock(40)
    await world.send_heartbeat(worker_id, live=[])
    advance_clock(1)
    await world.send_heartbeat(worker_id, live=[])


async def lose_lease(world: World, worker_id: str, attempt_id: str) -> None:
    advance_clock(200)
    async with world.database.write() as session:
        assert await endings.end_as_expired(session, attempt_id, 100, "daemon:reaper")


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("lose", [lose_supervisor, lose_machine, lose_claim, lose_lease])
async def test_quick_losses_of_supervisor_machine_claim_or_lease_do_not_fail_a_job(
    world: World,
    worker: str,
    lose: Callable[[World, str, str], Awaitable[None]],
    *,
    renewed: bool,
) -> None:
    """Regression: the third failed the job with "The trainer died three times"."""
    job = await world.submit_one_job()
    for number in range(1, 5):
        claim = await world.claim(job.id, worker, attempt=number)
        if renewed:
            await world.renew(claim.work_order.attempt_id, trainer_pid=5)
        await lose(world, worker, claim.work_order.attempt_id)
        queued = await world.job(job.id)
        assert queued.state is JobState.QUEUED, (number, queued.cause)
        assert queued.cause in {Cause.WORKER_LOST, Cause.LEASE_EXPIRED}
        advance_clock(50)
        await world.send_heartbeat(worker)
    assert (await read_worker(world, worker)).state is WorkerState.ONLINE


async def test_a_worker_that_starts_no_trainer_drains_with_the_reason(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    for number in (1, 2):
        await fail_start(world, job.id, worker, number)
        assert (await read_worker(world, worker)).state is WorkerState.ONLINE
    await fail_start(world, job.id, worker, 3)
    drained = await read_worker(world, worker)
    assert drained.state is WorkerState.DRAINING
    assert drained.drain_reason == f"3 attempts in a row could not be started. {BROKEN}"
    assert describe_worker(drained) == drained.drain_reason
    async with world.database.write() as session:
        answer = await heartbeats.record_heartbeat(
            session, world.own[worker], worker, WorkerHeartbeat(), world.settings
        )
    assert (answer.order, answer.drain_reason) == ("drain", drained.drain_reason)
    queued = await world.job(job.id)
    assert (queued.state, queued.cause) == (JobState.QUEUED, Cause.NOT_STARTED)
    assert queued.failure is None or BROKEN in queued.failure.message


async def test_jobs_of_a_broken_worker_are_trained_by_another_without_a_loss_of_attempts(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job(limits={"max_attempts": 1 + 3})
    for number in (1, 2, 3):
        await fail_start(world, job.id, worker, number)
    other = (await world.register(name="w2", host="host-2")).worker_id
    for number in (4, 5, 6):
        advance_clock(100)
        await world.send_heartbeat(other)
        attempt = (await world.start(job.id, other, attempt=number)).work_order.attempt_id
        await world.send_heartbeat(other, dead=[attempt])
        assert (await world.job(job.id)).state is JobState.QUEUED, "three of its four losses"


async def test_failed_starts_of_all_workers_fail_a_job_in_the_end(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job(limits={"max_attempts": 2})
    await fail_start(world, job.id, worker, 1)
    await fail_start(world, job.id, worker, 2)
    failed = await world.job(job.id)
    assert (failed.state, failed.cause) == (JobState.FAILED, Cause.NOT_STARTED)
    assert failed.failure is not None
    assert failed.failure.message == BROKEN


async def test_failed_starts_count_only_in_a_row(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    await fail_start(world, job.id, worker, 1)
    await fail_start(world, job.id, worker, 2)
    between = await world.submit_one_job(seeds=[7])
    attempt = (await world.start(between.id, worker, slot=1)).work_order.attempt_id
    await world.release(attempt, Outcome.FAILED, Cause.IMPORT_ERROR)
    assert (await world.job(between.id)).state is JobState.FAILED, "the fault of the job"
    advance_clock(30)
    await world.send_heartbeat(worker)
    await fail_start(world, job.id, worker, 3)
    assert (await read_worker(world, worker)).state is WorkerState.ONLINE


@pytest.mark.parametrize("ending", ["undrain", "restart"])
async def test_a_mended_worker_has_no_reason_and_fails_three_times_anew(
    world: World, worker: str, ending: str
) -> None:
    job = await world.submit_one_job()
    for number in (1, 2, 3):
        await fail_start(world, job.id, worker, number)
    if ending == "restart":
        await world.register(pid=200)
    else:
        async with world.database.write() as session:
            await workers.drain(session, world.admin, worker, draining=False)
    mended = await read_worker(world, worker)
    assert (mended.state, mended.drain_reason) == (WorkerState.ONLINE, None)
    advance_clock(100)
    await world.send_heartbeat(worker)
    await fail_start(world, job.id, worker, 4)
    assert (await read_worker(world, worker)).state is WorkerState.ONLINE


async def test_a_worker_that_a_user_drains_has_no_reason(world: World, worker: str) -> None:
    async with world.database.write() as session:
        await workers.drain(session, world.admin, worker)
    drained = await read_worker(world, worker)
    assert (drained.state, drained.drain_reason) == (WorkerState.DRAINING, None)


async def test_a_cancelled_job_whose_trainer_did_not_start_is_cancelled(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.cancel(job.id)
    await world.release(attempt, Outcome.FAILED, Cause.NOT_STARTED)
    assert (await world.job(job.id)).state is JobState.CANCELLED
