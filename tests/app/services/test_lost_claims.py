"""Claims whose answer was lost.

The same claim again gets the same answer; an attempt that no supervisor starts is given up after
the next heartbeats.
"""

from dataclasses import replace
from typing import Any

import pytest

from app.db.repositories import attempts
from app.db.repositories import workers as worker_rows
from app.domain.errors import ConflictError
from app.domain.secrets import derive_secret
from app.services.workers import workers
from palestra.contract.names import Schedule
from palestra.contract.states import AttemptState, Cause, JobState
from palestra.contract.work_order import ClaimAnswer
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, advance_clock


@pytest.fixture
async def worker(world: World) -> str:
    return (await world.register()).worker_id


async def claim_and_get_refusal(
    world: World, *arguments: str, attempt: int = 1, slot: int = 0
) -> str:
    with pytest.raises(ConflictError) as refused:
        await world.claim(*arguments, attempt=attempt, slot=slot)
    return refused.value.code


async def get_attempt_state(world: World, claimed: ClaimAnswer) -> AttemptState:
    run = await world.run(claimed.work_order.runs[0].run_id)
    return next(
        attempt.state for attempt in run.attempts if attempt.id == claimed.work_order.attempt_id
    )


async def test_the_same_claim_again_answers_the_same_lease(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    first = await world.claim(job.id, worker, slot=2)
    advance_clock(40)
    assert await world.claim(job.id, worker, slot=2) == first
    run = await world.run(job.run_ids[0])
    assert (run.fence, len(run.attempts)) == (1, 1)
    async with world.database.read() as session:
        attempt = await attempts.find(session, first.work_order.attempt_id)
    assert attempt is not None
    assert (attempt.lease_until - attempt.started_at).total_seconds() > 90, (
        "the lease began anew with the second answer"
    )


async def test_a_resumed_training_is_answered_with_the_snapshot_of_the_first_answer(
    live_run: AttemptWithStore,
) -> None:
    world, job_id, worker = live_run.world, live_run.job_id, live_run.worker_id
    snapshot_id = await live_run.write_snapshot(100)
    await world.send_heartbeat(worker, dead=[live_run.attempt_id])
    first = await world.claim(job_id, worker, attempt=2)
    assert first.work_order.runs[0].snapshot is not None
    assert first.work_order.runs[0].snapshot.snapshot_id == snapshot_id
    assert await world.claim(job_id, worker, attempt=2) == first
    assert first.work_order.runs[0].fence == (await world.run(live_run.run_id)).fence == 2


async def test_an_evaluation_is_answered_again_too(live_run: AttemptWithStore) -> None:
    await live_run.write_snapshot(100)
    job = await live_run.world.add_job(live_run.run_id, Schedule.EVALUATE)
    first = await live_run.world.claim(job.id, live_run.worker_id, slot=3)
    assert await live_run.world.claim(job.id, live_run.worker_id, slot=3) == first


async def test_a_pack_is_answered_with_all_of_its_runs(world: World, worker: str) -> None:
    job = await world.submit_one_job(seeds=[1, 2, 3], resources={"pack": 3})
    first = await world.claim(job.id, worker)
    assert len(first.work_order.runs) == 3
    assert await world.claim(job.id, worker) == first


async def test_a_repeated_claim_from_another_worker_is_refused(world: World, worker: str) -> None:
    other = (await world.register(name="w2", host="host-2")).worker_id
    job = await world.submit_one_job()
    await world.claim(job.id, worker)
    assert await claim_and_get_refusal(world, job.id, worker, slot=1) == "not_claimable"
    assert await claim_and_get_refusal(world, job.id, other) == "not_claimable"
    assert await claim_and_get_refusal(world, job.id, worker, attempt=2) == "not_claimable"
    world.own[worker] = replace(world.own[worker], derivation_key="another credential")
    assert await claim_and_get_refusal(world, job.id, worker) == "not_claimable"


async def test_an_attempt_with_a_supervisor_cannot_be_claimed_again(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    await world.start(job.id, worker)
    assert await claim_and_get_refusal(world, job.id, worker) == "not_claimable"


async def test_a_draining_worker_gets_the_same_answer_to_a_repeated_claim(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    first = await world.claim(job.id, worker)
    async with world.database.write() as session:
        await workers.drain(session, world.admin, worker)
    assert await world.claim(job.id, worker) == first


async def test_a_claim_that_no_heartbeat_lists_is_given_up_within_seconds(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    lost = await world.claim(job.id, worker)
    await world.send_heartbeat(worker, live=[])
    assert (await world.job(job.id)).state is JobState.STARTING, "the answer may be under way"
    advance_clock(11)
    await world.send_heartbeat(worker, live=[], busy=[0])
    assert (await world.job(job.id)).state is JobState.STARTING, "a claim of this slot is under way"
    await world.send_heartbeat(worker, live=[], busy=[1])
    job = await world.job(job.id)
    assert (job.state, job.cause) == (JobState.QUEUED, Cause.WORKER_LOST)
    assert "after a failure" not in (job.waiting or ""), "at once"
    assert await get_attempt_state(world, lost) is AttemptState.LOST
    await world.claim(job.id, worker, attempt=2, slot=0)


async def test_a_claim_after_the_heartbeat_before_outlasts_a_heartbeat_that_is_slow_to_be_stored(
    world: World, worker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the silence was measured earlier than the age of the claim."""
    job = await world.submit_one_job()
    await world.send_heartbeat(worker)
    await world.claim(job.id, worker)
    advance_clock(30)
    touch = worker_rows.touch

    async def touch_after_a_second(*arguments: Any) -> None:
        advance_clock(1)
        await touch(*arguments)

    monkeypatch.setattr(worker_rows, "touch", touch_after_a_second)
    await world.send_heartbeat(worker, live=[])
    assert (await world.job(job.id)).state is JobState.STARTING


async def test_three_lost_claim_answers_do_not_fail_the_job(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    for number in (1, 2, 3, 4):
        await world.claim(job.id, worker, attempt=number)
        advance_clock(30)
        await world.send_heartbeat(worker, live=[])
        starting = (await world.job(job.id)).state
        assert starting is JobState.STARTING, "the worker may have written it before the claim"
        await world.send_heartbeat(worker, live=[])
        assert (await world.job(job.id)).state is JobState.QUEUED
        advance_clock(60)
        await world.send_heartbeat(worker)


async def test_a_running_attempt_without_supervisor_is_given_up_and_one_that_renews_is_not(
    world: World, worker: str
) -> None:
    await world.submit(seeds=[0, 1, 2])
    gone, kept, known = await world.list_jobs()
    started = [
        await world.start(job.id, worker, slot=slot) for slot, job in enumerate((gone, kept, known))
    ]
    advance_clock(15)
    await world.send_heartbeat(worker, live=[])
    assert [job.state for job in await world.list_jobs()] == [JobState.RUNNING] * 3
    advance_clock(16)
    await world.renew(started[1].work_order.attempt_id)
    await world.send_heartbeat(worker, live=[started[2].work_order.attempt_id])
    states = {job.id: job.state for job in await world.list_jobs()}
    assert states == {
        gone.id: JobState.QUEUED,
        kept.id: JobState.RUNNING,
        known.id: JobState.RUNNING,
    }


def test_a_derived_secret_needs_a_key() -> None:
    assert derive_secret("pla", "key", "a") != derive_secret("pla", "key", "b")
    assert derive_secret("pla", "key", "a") != derive_secret("pla", "other", "a")
    with pytest.raises(ValueError, match="empty key"):
        derive_secret("pla", "", "a")
