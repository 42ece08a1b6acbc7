import asyncio

import pytest

from app.db.engine import Database
from app.db.models import AttemptRunRow
from app.domain.errors import ConflictError, DomainError, ForbiddenError, NotFoundError
from app.domain.secrets import is_well_formed
from palestra.contract.names import Schedule
from palestra.contract.states import (
    Cause,
    JobState,
    Outcome,
    ResumeQuality,
    RunState,
)
from tests.support.server_fixture import World

pytestmark = pytest.mark.both_databases(
    "Claims lock rows on PostgreSQL, and one waits for the other on SQLite.",
    of=(
        "app.db.repositories.attempts",
        "app.db.repositories.claims",
        "app.db.repositories.jobs",
        "app.db.repositories.workers",
    ),
)


async def claim_or_refusal(world: World, job_id: str, worker: str, slot: int) -> str:
    try:
        return (await world.claim(job_id, worker, slot=slot)).work_order.attempt_id
    except ConflictError as refused:
        return refused.code


async def test_one_of_fifty_concurrent_claims_succeeds(world: World) -> None:
    worker = (await world.register(slots=50)).worker_id
    job = await world.submit_one_job()
    answers = await asyncio.gather(
        *(claim_or_refusal(world, job.id, worker, slot) for slot in range(50))
    )
    assert sum(answer.startswith("att_") for answer in answers) == 1
    assert set(answers) - {"not_claimable"} == {
        next(answer for answer in answers if answer.startswith("att_"))
    }
    run = await world.run(job.run_ids[0])
    assert run.fence == 1
    assert len(run.attempts) == 1


async def test_the_work_order_of_a_claim_is_complete(world: World, worker: str) -> None:
    job = await world.submit_one_job(seeds=[7], limits={"grace_seconds": 9})
    answer = await world.claim(job.id, worker, slot=2)
    order = answer.work_order
    assert is_well_formed(answer.token)
    assert answer.token.startswith("pla_")
    assert (order.job_id, order.attempt_number, order.schedule) == (job.id, 1, Schedule.TRAIN)
    assert order.limits.grace_seconds == 9
    (only,) = order.runs
    assert (only.run_id, only.seed, only.fence, only.snapshot) == (job.run_ids[0], 7, 1, None)
    assert answer.lease_seconds >= 6 * answer.renew_seconds
    claimed = await world.job(job.id)
    assert (claimed.state, claimed.attempts, claimed.worker_id) == (JobState.STARTING, 1, worker)
    run = await world.run(only.run_id)
    assert (run.state, run.resume_quality) == (RunState.RUNNING, ResumeQuality.FRESH)
    assert run.attempts[0].fences == {run.id: 1}
    assert run.attempts[0].slot == 2


async def test_every_training_claim_raises_the_fence(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    for number in (1, 2, 3):
        order = (await world.start(job.id, worker, attempt=number)).work_order
        assert order.runs[0].fence == number
        await world.release(order.attempt_id, Outcome.PAUSED, Cause.USER)
        await world.resume(job.id)
    assert (await world.run(job.run_ids[0])).fence == 3


@pytest.mark.parametrize(("attempt", "code"), [(2, "not_claimable"), (99, "not_claimable")])
async def test_a_dispatch_message_of_an_earlier_attempt_claims_nothing(
    world: World, worker: str, attempt: int, code: str
) -> None:
    job = await world.submit_one_job()
    with pytest.raises(ConflictError) as refused:
        await world.claim(job.id, worker, attempt=attempt)
    assert refused.value.code == code
    assert (await world.run(job.run_ids[0])).fence == 0


@pytest.mark.parametrize("ended", ["cancelled", "paused", "succeeded"])
async def test_a_dispatch_message_for_a_job_that_has_moved_on_claims_nothing(
    world: World, worker: str, ended: str
) -> None:
    job = await world.submit_one_job()
    if ended == "succeeded":
        order = (await world.start(job.id, worker)).work_order
        await world.release(order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    else:
        await (world.cancel if ended == "cancelled" else world.pause)(job.id)
    for attempt in (1, 2):
        with pytest.raises(ConflictError) as refused:
            await world.claim(job.id, worker, attempt=attempt)
        assert refused.value.code == "not_claimable"
    assert (await world.job(job.id)).state == ended


async def test_a_slot_runs_one_attempt(world: World, worker: str) -> None:
    await world.submit(seeds=[0, 1])
    first, second = await world.list_jobs()
    await world.claim(first.id, worker, slot=0)
    with pytest.raises(ConflictError) as refused:
        await world.claim(second.id, worker, slot=0)
    assert refused.value.code == "slot_busy"
    assert (await world.job(second.id)).state is JobState.QUEUED
    assert (await world.run(second.run_ids[0])).fence == 0
    await world.claim(second.id, worker, slot=1)


async def test_a_worker_claims_only_jobs_that_fit_its_resources(world: World, worker: str) -> None:
    await world.register(name="w2", pool="far")
    far = await world.submit_one_job(pool="far")
    await world.register(name="w3", gpus=[{"index": 0, "name": "g", "memory_mib": 1}])
    large = await world.submit_one_job(seeds=[5], resources={"gpus": 1})
    for job in (far, large):
        with pytest.raises(ConflictError) as refused:
            await world.claim(job.id, worker)
        assert refused.value.code == "does_not_fit"
    with pytest.raises(DomainError) as unknown:
        await world.claim(large.id, worker, slot=4)
    assert unknown.value.code == "unknown_slot"


async def test_claims_with_unknown_jobs_or_workers_are_not_found(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    with pytest.raises(NotFoundError):
        await world.claim("job_" + "0" * 26, worker)
    with pytest.raises(ForbiddenError):
        await world.claim(job.id, "wrk_" + "0" * 26)


async def test_the_database_itself_refuses_a_second_live_training_attempt_of_a_run(
    world: World, worker: str, database: Database
) -> None:
    job = await world.submit_one_job()
    held = (await world.claim(job.id, worker)).work_order
    await world.submit(seeds=[1])
    other = next(found for found in await world.list_jobs() if found.id != job.id)
    second = (await world.claim(other.id, worker, slot=1)).work_order
    row = AttemptRunRow(
        attempt_id=second.attempt_id,
        run_id=held.runs[0].run_id,
        fence=9,
        training=True,
        live_training=True,
    )
    async with database.write() as session:
        session.add(row)
        with pytest.raises(Exception, match=r"(?i)unique"):
            await session.flush()
        await session.rollback()


async def test_a_run_has_one_training_job_at_a_time(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    for _ in range(2):
        with pytest.raises(ConflictError) as refused:
            await world.add_job(job.run_ids[0], Schedule.TRAIN)
        assert refused.value.code == "run_busy"
        await world.pause(job.id)
    await world.cancel(job.id)
    again = await world.add_job(job.run_ids[0], Schedule.TRAIN)
    run = await world.run(job.run_ids[0])
    assert (run.job_id, run.state) == (again.id, RunState.QUEUED)


async def test_twenty_concurrent_submissions_on_a_run_make_one_training_job(world: World) -> None:
    job = await world.submit_one_job()
    await world.cancel(job.id)
    answers = await asyncio.gather(
        *(world.add_job(job.run_ids[0], Schedule.TRAIN) for _ in range(20)), return_exceptions=True
    )
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert all(
        isinstance(answer, ConflictError) and answer.code == "run_busy"
        for answer in answers
        if isinstance(answer, BaseException)
    )


async def test_evaluating_needs_a_snapshot(world: World) -> None:
    job = await world.submit_one_job()
    with pytest.raises(ConflictError) as refused:
        await world.add_job(job.run_ids[0], Schedule.EVALUATE)
    assert refused.value.code == "no_snapshot"
    with pytest.raises(NotFoundError):
        await world.add_job(
            job.run_ids[0], Schedule.EVALUATE, evaluate={"snapshot": "snp_" + "0" * 26}
        )
