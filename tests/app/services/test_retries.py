"""Retries of failed runs, and resumes with changed code.

A resume whose code has changed since the pause is refused and the run stays paused.
"""

import json
from typing import Any

import pytest

from app.domain.errors import ConflictError, NotFoundError
from palestra.contract.names import Schedule, new_id
from palestra.contract.states import Cause, JobState, Outcome, RunState
from palestra.contract.work_order import Failure
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import (
    TINY_CODE,
    WALK_CODE,
    World,
    make_catalogue,
    make_catalogue_with_walk,
    make_definition,
)

OPTIONS = {
    "priority_class": "idle",
    "priority": 7,
    "resources": {"cpu_threads": 2, "compile": "eager"},
    "limits": {"max_attempts": 5, "grace_seconds": 9},
}
CHANGED = Failure(message="the experiment was made with other code")


async def fail_training(live_run: AttemptWithStore) -> str:
    """Ends the training as failed; returns its run ID."""
    await live_run.world.release(
        live_run.attempt_id, Outcome.FAILED, Cause.USER_EXCEPTION, last_seq=live_run.seq
    )
    assert (await live_run.world.run(live_run.run_id)).state is RunState.FAILED
    return live_run.run_id


async def test_a_retry_resumes_from_the_newest_snapshot(
    world: World, live_run: AttemptWithStore
) -> None:
    await live_run.write_snapshot(100)
    newest = await live_run.write_snapshot(200)
    run_id = await fail_training(live_run)
    job = await world.retry(run_id, reason="once more")
    assert (job.state, job.schedule, job.run_ids) == (JobState.QUEUED, Schedule.TRAIN, [run_id])
    run = await world.run(run_id)
    assert (run.state, run.job_id, run.failure, run.finished_at) == (
        RunState.QUEUED,
        job.id,
        None,
        None,
    )
    (order,) = (await world.start(job.id, live_run.worker_id)).work_order.runs
    assert order.snapshot is not None
    assert (order.snapshot.snapshot_id, order.fence) == (newest, 2)
    assert (await world.run(run_id)).progress.env_step == 200


async def test_a_retry_has_the_options_of_the_training_before(world: World) -> None:
    worker = await world.register(pool="gym")
    first = await world.submit_one_job(pool="gym", **OPTIONS)
    attempt = (await world.start(first.id, worker.worker_id)).work_order.attempt_id
    await world.release(attempt, Outcome.FAILED, Cause.USER_EXCEPTION)
    job = await world.retry(first.run_ids[0])
    same = ("pool", "priority_class", "priority", "resources", "limits", "schedule", "evaluate")
    assert {name: getattr(job, name) for name in same} == {
        name: getattr(first, name) for name in same
    }


async def test_without_a_snapshot_a_retry_begins_at_the_start(
    world: World, live_run: AttemptWithStore
) -> None:
    await live_run.write_snapshot(100, upload=False)
    run_id = await fail_training(live_run)
    job = await world.retry(run_id)
    (order,) = (await world.start(job.id, live_run.worker_id)).work_order.runs
    assert order.snapshot is None


async def test_a_retry_from_the_start_supersedes_all_earlier_records(
    world: World, live_run: AttemptWithStore
) -> None:
    old = await live_run.write_snapshot(100)
    run_id = await fail_training(live_run)
    job = await world.retry(run_id, origin="start")
    assert job.afresh
    claimed = await world.start(job.id, live_run.worker_id)
    assert claimed.work_order.runs[0].snapshot is None
    assert (await live_run.list_snapshots())[old].superseded
    assert (await world.run(run_id)).progress.env_step == 0

    live_run.attempt_id, live_run.seq = claimed.work_order.attempt_id, 0
    new = await live_run.write_snapshot(50)
    await world.send_heartbeat(live_run.worker_id, dead=[live_run.attempt_id])
    again = await world.start(job.id, live_run.worker_id, attempt=2, slot=1)
    assert again.work_order.runs[0].snapshot is not None
    assert again.work_order.runs[0].snapshot.snapshot_id == new, (
        "only its first attempt begins afresh"
    )


async def test_a_cancelled_run_can_be_retried(world: World) -> None:
    job = await world.submit_one_job()
    await world.cancel(job.id)
    assert (await world.retry(job.run_ids[0])).state is JobState.QUEUED


@pytest.mark.parametrize(
    ("state", "remedy"),
    [
        ("queued", "wait"),
        ("running", "cancel it"),
        ("paused", "resume it"),
        ("succeeded", "nothing to try"),
    ],
)
async def test_only_failed_or_cancelled_runs_can_be_retried(
    world: World, state: str, remedy: str
) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    if state == "paused":
        await world.pause(job.id)
    elif state != "queued":
        attempt = (await world.start(job.id, worker.worker_id)).work_order.attempt_id
        if state == "succeeded":
            await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    with pytest.raises(ConflictError, match=remedy) as refused:
        await world.retry(job.run_ids[0])
    assert refused.value.code == "not_failed"
    assert len(await world.list_jobs()) == 1


async def test_a_retry_of_an_unknown_run_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.retry(new_id("run"))


def make_catalogue_with_digest(digest: str) -> Any:
    """Returns the catalogue of a worker whose distribution has another digest."""
    return json.loads(json.dumps(make_catalogue()).replace(TINY_CODE["digest"], digest * 64))


async def make_paused_run(world: World) -> tuple[str, str, str]:
    """Returns run ID, job ID and worker ID of a paused training with a registered agent."""
    worker = await world.register()
    await world.submit(make_definition(agent={"name": "tiny", "parameters": {}}))
    (job,) = await world.list_jobs()
    attempt = (await world.start(job.id, worker.worker_id)).work_order.attempt_id
    await world.pause(job.id)
    await world.release(attempt, Outcome.PAUSED, Cause.USER)
    return job.run_ids[0], job.id, worker.worker_id


async def test_a_resume_with_other_code_is_refused_and_the_run_stays_paused(world: World) -> None:
    run_id, job_id, _ = await make_paused_run(world)
    await world.register(catalogue=make_catalogue_with_digest("8"))
    with pytest.raises(
        ConflictError, match=r"made with tiny-agents .*--allow-code-change"
    ) as refused:
        await world.resume(job_id)
    assert refused.value.code == "code_changed"
    assert (await world.run(run_id)).state is RunState.PAUSED
    await world.register()
    assert (await world.resume(job_id)).state is JobState.QUEUED


async def test_a_resume_with_another_environment_is_refused_unless_allowed(world: World) -> None:
    """The code of a registered environment belongs to the experiment, as an agent's code does."""
    worker = await world.register(catalogue=make_catalogue_with_walk())
    await world.submit(make_definition(env={"id": "tiny/Walk-v0"}))
    (job,) = await world.list_jobs()
    attempt = (await world.start(job.id, worker.worker_id)).work_order.attempt_id
    await world.pause(job.id)
    await world.release(attempt, Outcome.PAUSED, Cause.USER)
    await world.register(
        catalogue=json.loads(
            json.dumps(make_catalogue_with_walk()).replace(WALK_CODE["digest"], "8" * 64)
        )
    )
    with pytest.raises(
        ConflictError,
        match=r"made with tiny-envs 2\.0 \(digest 5{12}\), .* have tiny-envs 2\.0 \(digest 8{12}\)",
    ):
        await world.resume(job.id)
    assert (await world.resume(job.id, allow_code_change=True)).state is JobState.QUEUED
    claimed = await world.start(job.id, worker.worker_id, attempt=2)
    ran = {"kind": "builtin", "environment": {**WALK_CODE, "digest": "8" * 64}}
    await world.release(
        claimed.work_order.attempt_id,
        Outcome.SUCCEEDED,
        Cause.BUDGET,
        provenance={"other_code": ran},
    )
    shown = (await world.run(job.run_ids[0])).attempts[-1].other_code
    assert shown is not None
    assert shown.model_dump(mode="json") == ran


async def test_a_resume_with_other_code_can_be_allowed_and_is_shown(world: World) -> None:
    run_id, job_id, worker_id = await make_paused_run(world)
    await world.register(catalogue=make_catalogue_with_digest("8"))
    assert (await world.resume(job_id, allow_code_change=True)).allow_code_change
    claimed = await world.start(job_id, worker_id, attempt=2)
    assert claimed.work_order.allow_code_change
    assert claimed.work_order.code.model_dump(mode="json") == TINY_CODE
    ran = {**TINY_CODE, "digest": "8" * 64}
    report = {"provenance": {"other_code": ran}}
    await world.release(claimed.work_order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, **report)
    shown = [attempt.other_code for attempt in (await world.run(run_id)).attempts]
    assert [code and code.model_dump()["digest"] for code in shown] == [None, "8" * 64]


async def test_an_attempt_that_finds_other_code_leaves_the_run_paused(world: World) -> None:
    """The catalogue dates from the worker's start, so only the trainer detects the change."""
    run_id, job_id, worker_id = await make_paused_run(world)
    for number in (2, 3):
        await world.resume(job_id)
        claimed = await world.claim(job_id, worker_id, attempt=number)
        attempt_id = claimed.work_order.attempt_id
        await world.release(attempt_id, Outcome.FAILED, Cause.CODE_CHANGED, failure=CHANGED)
        run = await world.run(run_id)
        assert (run.state, run.cause, run.failure) == (RunState.PAUSED, Cause.CODE_CHANGED, CHANGED)
    await world.resume(job_id)
    run = await world.run(run_id)
    assert (run.state, run.failure) == (RunState.QUEUED, None)


async def test_a_run_paused_in_the_queue_stays_paused_with_changed_code(world: World) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    await world.pause(job.id)
    await world.resume(job.id)
    attempt_id = (await world.claim(job.id, worker.worker_id)).work_order.attempt_id
    await world.release(attempt_id, Outcome.FAILED, Cause.CODE_CHANGED, failure=CHANGED)
    assert (await world.job(job.id)).state is JobState.PAUSED


async def test_a_first_attempt_with_changed_code_fails_and_can_be_retried(world: World) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    attempt_id = (await world.claim(job.id, worker.worker_id)).work_order.attempt_id
    await world.release(attempt_id, Outcome.FAILED, Cause.CODE_CHANGED, failure=CHANGED)
    assert (await world.job(job.id)).state is JobState.FAILED
    assert (await world.retry(job.run_ids[0], allow_code_change=True)).allow_code_change


async def test_a_retry_with_other_code_is_refused_unless_allowed(world: World) -> None:
    run_id, job_id, worker_id = await make_paused_run(world)
    await world.cancel(job_id)
    await world.register(catalogue=make_catalogue_with_digest("8"))
    with pytest.raises(ConflictError) as refused:
        await world.retry(run_id)
    assert refused.value.code == "code_changed"
    job = await world.retry(run_id, allow_code_change=True)
    await world.claim(job.id, worker_id)
