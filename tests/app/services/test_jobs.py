import asyncio

import pytest

from app.db.engine import Database
from app.db.repositories import audit
from app.domain.errors import ConflictError, NotFoundError
from app.services.events import event_log
from palestra.contract.states import Cause, JobState, Outcome, RunState
from tests.support.server_fixture import World

both_databases = pytest.mark.both_databases(
    "Requests lock the row of a job on PostgreSQL, where transactions write concurrently.",
    of=("app.db.repositories.jobs",),
)


@pytest.fixture
async def worker(world: World) -> str:
    return (await world.register()).worker_id


async def make_job_in_state(world: World, worker: str, state: JobState) -> tuple[str, str | None]:
    """Brings a new job into the given state; returns the job and its live attempt."""
    job = await world.submit_one_job()
    if state is JobState.QUEUED:
        return job.id, None
    if state is JobState.PAUSED:
        await world.pause(job.id)
        return job.id, None
    attempt = (await world.claim(job.id, worker)).work_order.attempt_id
    if state is not JobState.STARTING:
        await world.renew(attempt)
    if state is JobState.PAUSING:
        await world.pause(job.id)
    if state is JobState.CANCELLING:
        await world.cancel(job.id)
    ends = {
        JobState.SUCCEEDED: (Outcome.SUCCEEDED, Cause.BUDGET),
        JobState.FAILED: (Outcome.FAILED, Cause.USER_EXCEPTION),
        JobState.CANCELLED: (Outcome.CANCELLED, Cause.USER),
    }
    if state in ends:
        await world.release(attempt, *ends[state])
        return job.id, None
    return job.id, attempt


REACHABLE = [state for state in JobState if state not in {JobState.LOST, JobState.PREEMPTING}]


@pytest.mark.parametrize("state", REACHABLE)
async def test_cancel_acts_according_to_the_state_of_the_job(
    world: World, worker: str, state: JobState
) -> None:
    job_id, attempt = await make_job_in_state(world, worker, state)
    assert (await world.job(job_id)).state is state
    if state in {JobState.SUCCEEDED, JobState.FAILED}:
        with pytest.raises(ConflictError) as refused:
            await world.cancel(job_id)
        assert refused.value.code == "already_final"
        assert (await world.job(job_id)).state is state
        return
    after = await world.cancel(job_id)
    assert after.state is (JobState.CANCELLING if attempt else JobState.CANCELLED)
    assert (await world.cancel(job_id)).state is after.state
    if attempt:
        await world.release(attempt, Outcome.CANCELLED, Cause.USER)
    assert (await world.job(job_id)).state is JobState.CANCELLED


@pytest.mark.parametrize("state", REACHABLE)
async def test_pause_acts_according_to_the_state_of_the_job(
    world: World, worker: str, state: JobState
) -> None:
    job_id, attempt = await make_job_in_state(world, worker, state)
    expected = {
        JobState.QUEUED: JobState.PAUSED,
        JobState.PAUSED: JobState.PAUSED,
        JobState.STARTING: JobState.PAUSING,
        JobState.RUNNING: JobState.PAUSING,
        JobState.PAUSING: JobState.PAUSING,
    }
    if state in expected:
        assert (await world.pause(job_id)).state is expected[state]
    else:
        with pytest.raises(ConflictError):
            await world.pause(job_id)
        assert (await world.job(job_id)).state is state
    if attempt and state in expected:
        await world.release(attempt, Outcome.PAUSED, Cause.USER)
        assert (await world.job(job_id)).state is JobState.PAUSED


@pytest.mark.parametrize("state", REACHABLE)
async def test_resume_acts_according_to_the_state_of_the_job(
    world: World, worker: str, state: JobState
) -> None:
    job_id, _ = await make_job_in_state(world, worker, state)
    expected = {
        JobState.PAUSED: JobState.QUEUED,
        **{same: same for same in (JobState.QUEUED, JobState.STARTING, JobState.RUNNING)},
    }
    if state in expected:
        assert (await world.resume(job_id)).state is expected[state]
    else:
        with pytest.raises(ConflictError):
            await world.resume(job_id)
        assert (await world.job(job_id)).state is state


@both_databases
async def test_fifty_concurrent_user_requests_leave_a_legal_state(
    world: World, worker: str
) -> None:
    job_id, attempt = await make_job_in_state(world, worker, JobState.RUNNING)
    assert attempt is not None
    wishes = [world.pause, world.cancel, world.resume] * 16
    answers = await asyncio.gather(*(wish(job_id) for wish in wishes), return_exceptions=True)
    assert all(
        not isinstance(answer, BaseException) or isinstance(answer, ConflictError)
        for answer in answers
    )
    assert (await world.job(job_id)).state is JobState.CANCELLING


async def test_every_transition_is_in_the_audit_log_and_the_event_log(
    world: World, worker: str, database: Database
) -> None:
    job_id, attempt = await make_job_in_state(world, worker, JobState.PAUSING)
    assert attempt is not None
    await world.release(attempt, Outcome.PAUSED, Cause.USER)
    async with database.read() as session:
        rows = await audit.list_for_object(session, world.project_id, "job", job_id)
        assert await event_log.read_cursor(session) > 0
    steps = [(row.data["from"], row.data["to"]) for row in rows]
    assert steps == [
        ("queued", "starting"),
        ("starting", "running"),
        ("running", "pausing"),
        ("pausing", "paused"),
    ]
    assert rows[0].actor == f"worker:{worker}"
    assert rows[-1].actor == f"attempt:{attempt}"


@both_databases
async def test_a_refused_change_writes_no_audit_entry_or_event(
    world: World, worker: str, database: Database
) -> None:
    job_id, _ = await make_job_in_state(world, worker, JobState.SUCCEEDED)

    async def count_entries_and_events() -> tuple[int, int]:
        async with database.read() as session:
            return len(
                await audit.list_for_object(session, world.project_id, "job", job_id)
            ), await event_log.read_cursor(session)

    before = await count_entries_and_events()
    with pytest.raises(ConflictError):
        await world.cancel(job_id)
    assert await count_entries_and_events() == before


async def test_the_state_of_runs_and_experiments_follows_their_jobs(
    world: World, worker: str
) -> None:
    from app.services.experiments import experiments

    experiment, _ = await world.submit(seeds=[0, 1])
    first, second = await world.list_jobs()

    async def count_runs() -> dict[RunState, int]:
        async with world.database.read() as session:
            return (await experiments.get(session, world.admin, experiment.id)).runs

    attempt = (await world.start(first.id, worker)).work_order.attempt_id
    assert await count_runs() == {RunState.RUNNING: 1, RunState.QUEUED: 1}
    await world.pause(second.id)
    assert await count_runs() == {RunState.RUNNING: 1, RunState.PAUSED: 1}
    await world.release(attempt, Outcome.FAILED, Cause.USER_EXCEPTION)
    assert await count_runs() == {RunState.FAILED: 1, RunState.PAUSED: 1}


async def test_jobs_of_other_projects_are_not_found(world: World) -> None:
    for job_id in ("job_" + "0" * 26, "../x", "y" * 4_000):
        with pytest.raises(NotFoundError):
            await world.cancel(job_id)
