import pytest

from app.db.engine import Database
from app.domain.errors import ConflictError
from app.services.attempts import endings
from palestra.contract.states import (
    AttemptState,
    Cause,
    JobState,
    Order,
    Outcome,
    ResumeQuality,
    RunState,
)
from palestra.contract.work_order import AttemptReport, Failure
from tests.support.server_fixture import World, advance_clock


async def test_the_first_renewal_sets_the_job_to_running(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    attempt = (await world.claim(job.id, worker)).work_order.attempt_id
    answer = await world.renew(attempt, trainer_pid=5)
    assert answer.order is Order.CONTINUE
    assert (await world.job(job.id)).state is JobState.RUNNING
    assert (await world.run(job.run_ids[0])).attempts[0].state is AttemptState.RUNNING


async def test_a_user_request_reaches_the_supervisor_in_the_renewal_answer(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.pause(job.id)
    assert (await world.renew(attempt)).order is Order.PAUSE
    await world.cancel(job.id)
    assert (await world.renew(attempt)).order is Order.CANCEL


async def test_a_stale_attempt_is_refused_everywhere_as_stale(
    world: World, worker: str, database: Database
) -> None:
    job = await world.submit_one_job()
    stale = (await world.start(job.id, worker)).work_order.attempt_id
    await world.send_heartbeat(worker, dead=[stale])
    fresh = (await world.start(job.id, worker, attempt=2)).work_order
    assert (await world.renew(stale)).order is Order.STALE
    with pytest.raises(ConflictError) as refused:
        await world.release(stale, Outcome.SUCCEEDED, Cause.BUDGET)
    assert refused.value.code == "stale_attempt"
    async with database.write() as session:
        assert not await endings.end_as_lost(session, stale, Cause.WORKER_LOST, "daemon:test")
    assert fresh.runs[0].fence == 2
    assert (await world.job(job.id)).state is JobState.RUNNING


async def test_a_lease_that_lapsed_but_was_not_reclaimed_is_renewed(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    advance_clock(600)
    assert (await world.renew(attempt)).order is Order.CONTINUE


async def test_a_release_waits_for_all_telemetry_and_may_be_repeated(
    world: World, worker: str, database: Database
) -> None:
    from app.db.models import AttemptRow

    job = await world.submit_one_job()
    attempt_id = (await world.start(job.id, worker)).work_order.attempt_id
    with pytest.raises(ConflictError) as refused:
        await world.release(attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=3)
    assert (refused.value.code, refused.value.extra) == ("telemetry_missing", {"expected_seq": 1})
    async with database.write() as session:
        attempt = await session.get(AttemptRow, attempt_id)
        assert attempt is not None
        attempt.acked_seq = 3
    for _ in range(3):
        await world.release(attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=3)
    done = await world.job(job.id)
    assert (done.state, done.cause) == (JobState.SUCCEEDED, Cause.BUDGET)
    run = await world.run(job.run_ids[0])
    assert (run.state, run.cause) == (RunState.SUCCEEDED, Cause.BUDGET)
    assert run.finished_at is not None
    assert run.attempts[0].outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ("outcome", "cause", "state"),
    [
        (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE, JobState.SUCCEEDED),
        (Outcome.PAUSED, Cause.USER, JobState.PAUSED),
        (Outcome.CANCELLED, Cause.USER, JobState.CANCELLED),
        (Outcome.DRAINED, Cause.DRAIN, JobState.QUEUED),
        (Outcome.FAILED, Cause.USER_EXCEPTION, JobState.FAILED),
        (Outcome.FAILED, Cause.CUDA_OUT_OF_MEMORY, JobState.FAILED),
        (Outcome.FAILED, Cause.DIVERGED, JobState.FAILED),
        (Outcome.FAILED, Cause.TRAINER_KILLED, JobState.QUEUED),
        (Outcome.FAILED, Cause.HOST_OUT_OF_MEMORY, JobState.QUEUED),
    ],
)
async def test_the_report_of_an_attempt_decides_the_state_of_its_job(
    world: World, worker: str, outcome: Outcome, cause: Cause, state: JobState
) -> None:
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.release(
        attempt,
        outcome,
        cause,
        failure=Failure(message="bad\0news") if outcome is Outcome.FAILED else None,
    )
    after = await world.job(job.id)
    assert after.state is state
    if outcome is Outcome.FAILED:
        assert after.failure is not None
        assert after.failure.message == "bad\ufffdnews"


@pytest.mark.parametrize("wish", ["pause", "cancel"])
@pytest.mark.parametrize("cause", [Cause.TRAINER_KILLED, Cause.WORKER_LOST])
async def test_a_trainer_that_crashes_during_a_requested_stop_counts_as_stopped(
    world: World, worker: str, wish: str, cause: Cause
) -> None:
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await (world.pause if wish == "pause" else world.cancel)(job.id)
    if cause is Cause.WORKER_LOST:
        await world.send_heartbeat(worker, dead=[attempt])
    else:
        await world.release(attempt, Outcome.FAILED, cause)
    assert (await world.job(job.id)).state == ("paused" if wish == "pause" else "cancelled")


async def test_a_success_reported_before_a_cancel_arrived_stays_a_success(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.cancel(job.id)
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    assert (await world.job(job.id)).state is JobState.SUCCEEDED


async def test_the_first_loss_is_queued_at_once_and_the_second_waits(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    for number in (1, 2):
        attempt = (await world.start(job.id, worker, attempt=number)).work_order.attempt_id
        advance_clock(100)
        await world.send_heartbeat(worker)
        await world.release(attempt, Outcome.FAILED, Cause.TRAINER_KILLED)
        again = await world.job(job.id)
        assert again.state is JobState.QUEUED
        if number == 1:
            assert "after a failure" not in (again.waiting or "")
    assert "after a failure" in (again.waiting or "")
    with pytest.raises(ConflictError):
        await world.claim(job.id, worker, attempt=3)
    advance_clock(11)
    await world.claim(job.id, worker, attempt=3)


async def test_three_crashes_within_a_minute_fail_the_job_as_poison(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    for number in (1, 2, 3):
        attempt = (await world.start(job.id, worker, attempt=number)).work_order.attempt_id
        await world.release(attempt, Outcome.FAILED, Cause.TRAINER_KILLED)
        advance_clock(30)
    failed = await world.job(job.id)
    assert (failed.state, failed.cause) == (JobState.FAILED, Cause.POISON)
    assert failed.failure is not None
    assert "three times" in failed.failure.message
    run = await world.run(job.run_ids[0])
    assert (run.state, run.cause) == (RunState.FAILED, Cause.POISON)


async def test_a_restarted_worker_keeps_its_attempts_and_a_rebooted_machine_loses_them_at_once(
    world: World,
) -> None:
    worker = (await world.register()).worker_id
    job = await world.submit_one_job()
    await world.start(job.id, worker)
    assert (await world.register(pid=200)).worker_id == worker
    assert (await world.job(job.id)).state is JobState.RUNNING
    assert (await world.register(boot_id="boot-2")).worker_id == worker
    lost = await world.job(job.id)
    assert (lost.state, lost.cause) == (JobState.QUEUED, Cause.WORKER_LOST)


async def test_a_worker_cannot_give_up_the_attempts_of_another(world: World, worker: str) -> None:
    other = (await world.register(name="w2", host="host-2")).worker_id
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.send_heartbeat(other, dead=[attempt])
    assert (await world.job(job.id)).state is JobState.RUNNING


async def test_a_draining_worker_ends_what_it_has_and_claims_nothing(
    world: World, worker: str, database: Database
) -> None:
    from app.services.workers import workers

    await world.submit(seeds=[0, 1])
    first, second = await world.list_jobs()
    attempt = (await world.start(first.id, worker)).work_order.attempt_id
    async with database.write() as session:
        await workers.drain(session, world.admin, worker)
    assert await world.send_heartbeat(worker) == "drain"
    assert (await world.renew(attempt)).order is Order.CONTINUE
    with pytest.raises(ConflictError) as refused:
        await world.claim(second.id, worker, slot=1)
    assert refused.value.code == "worker_draining"


async def test_a_report_is_kept_as_provenance(
    world: World, worker: str, database: Database
) -> None:
    from app.services.runs import runs

    job = await world.submit_one_job()
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    await world.release(
        attempt, Outcome.SUCCEEDED, Cause.BUDGET, provenance={"packages": {"torch": "2.13.0"}}
    )
    async with database.read() as session:
        record = await runs.read_provenance(session, world.admin, job.run_ids[0])
    assert record.attempts[0]["report"] == {"packages": {"torch": "2.13.0"}}
    assert record.attempts[0]["code"] == {"kind": "builtin"}
    assert record.attempts[0]["worker"]["name"] == "w1"


def test_reports_default_to_a_fresh_start() -> None:
    assert (
        AttemptReport(outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET).resume_quality
        is ResumeQuality.FRESH
    )
