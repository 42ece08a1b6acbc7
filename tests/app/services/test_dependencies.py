"""Jobs that wait for the end of other jobs."""

from typing import Any

import pytest
from sqlalchemy import select

from app.daemons.dispatcher import Dispatcher
from app.db.engine import Database
from app.db.models import EventRow, JobRow
from app.db.models.usage import QueueGroupRow
from app.domain.errors import DomainError
from palestra.contract.names import Schedule
from palestra.contract.queue import WaitReason
from palestra.contract.states import Cause, JobState, Outcome
from tests.app.services.test_dispatcher import RecordingQueue, dispatcher, queue
from tests.support.queue_steps import explain
from tests.support.server_fixture import World

__all__ = ["dispatcher", "queue"]

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.both_databases(
        "The end of a job locks those that wait for it on PostgreSQL.",
        of=("app.db.repositories.dependencies",),
    ),
]


async def finish(world: World, job_id: str, outcome: Outcome = Outcome.SUCCEEDED) -> None:
    worker = (await world.register(slots=4)).worker_id
    attempt = (await world.start(job_id, worker)).work_order.attempt_id
    cause = Cause.BUDGET if outcome is Outcome.SUCCEEDED else Cause.USER_EXCEPTION
    await world.release(attempt, outcome, cause)


async def refusal(action: Any) -> tuple[str, str | None]:
    with pytest.raises(DomainError) as refused:
        await action
    return refused.value.code, refused.value.pointer


async def test_a_job_starts_once_the_jobs_before_it_have_succeeded(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue, database: Database
) -> None:
    await world.register(slots=4)
    first, second = await world.submit_one_job(seeds=[0]), await world.submit_one_job(seeds=[1])
    waits = await world.submit_one_job(seeds=[2], after=[first.id, second.id], priority=9)
    assert (sorted(waits.after), waits.on, waits.position) == (
        sorted([first.id, second.id]),
        "success",
        None,
    )
    found = await explain(world, waits.id)
    assert found.reason is WaitReason.DEPENDENCY
    assert first.id in found.sentence
    assert second.id in found.sentence
    assert waits.waiting == found.sentence
    await finish(world, first.id)
    found = await explain(world, waits.id)
    assert found.sentence == f"Starts once the job {second.id} has succeeded."
    await finish(world, second.id)
    async with database.read() as session:
        events = (
            await session.scalars(
                select(EventRow.data).where(EventRow.job_id == waits.id).order_by(EventRow.id)
            )
        ).all()
    assert len(events) > 2
    assert await dispatcher.tick() == 1
    assert queue.jobs == [waits.id]


async def test_jobs_that_wait_for_others_take_no_part_in_the_queue(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue, database: Database
) -> None:
    await world.register(slots=4)
    first = await world.submit_one_job(seeds=[0])
    await world.submit(seeds=list(range(1, 40)), by=world.other, after=[first.id], priority=9)
    assert await dispatcher.tick() == 1
    assert queue.jobs == [first.id]
    async with database.read() as session:
        assert list(await session.scalars(select(QueueGroupRow.user_id))) == [world.admin.user_id]
    await finish(world, first.id)
    assert await dispatcher.tick() == 4


async def test_a_failure_cancels_what_waits_for_success_and_so_on(world: World) -> None:
    first = await world.submit_one_job(seeds=[0])
    second = await world.submit_one_job(seeds=[1], after=[first.id])
    third = await world.submit_one_job(seeds=[2], after=[second.id])
    last = await world.submit_one_job(seeds=[3], after=[third.id], on="any")
    await finish(world, first.id, Outcome.FAILED)
    for job in (second, third):
        ended = await world.job(job.id)
        assert (ended.state, ended.cause) == (JobState.CANCELLED, Cause.DEPENDENCY)
        run = await world.run(ended.run_ids[0])
        assert (run.state, run.cause) == ("cancelled", Cause.DEPENDENCY)
    assert (await world.job(second.id)).failure is not None
    released = await world.job(last.id)
    assert (released.state, released.position) == (JobState.QUEUED, 1)


async def test_a_paused_job_is_cancelled_too_and_a_chain_may_be_long(world: World) -> None:
    jobs = [await world.submit_one_job(seeds=[0])]
    for seed in range(1, 15):
        jobs.append(await world.submit_one_job(seeds=[seed], after=[jobs[-1].id]))
    await world.pause(jobs[1].id)
    await world.cancel(jobs[0].id)
    states = {job.state for job in await world.list_jobs()}
    assert states == {JobState.CANCELLED}


async def test_a_lost_machine_ends_no_job(world: World) -> None:
    worker = (await world.register(slots=2)).worker_id
    first = await world.submit_one_job(seeds=[0])
    waits = await world.submit_one_job(seeds=[1], after=[first.id])
    attempt = (await world.start(first.id, worker)).work_order.attempt_id
    await world.send_heartbeat(worker, live=(), dead=[attempt])
    assert (await world.job(first.id)).state is JobState.QUEUED
    assert (await explain(world, waits.id)).reason is WaitReason.DEPENDENCY


async def test_dependencies_that_cannot_be_met_are_refused(world: World) -> None:
    failed = await world.submit_one_job(seeds=[0])
    await finish(world, failed.id, Outcome.FAILED)
    done = await world.submit_one_job(seeds=[1])
    await finish(world, done.id)
    refused = await refusal(world.submit(seeds=[2], after=[done.id, failed.id]))
    assert refused == ("dependency_failed", "/options/after/1")
    refused = await refusal(world.submit(seeds=[2], after=["job_unknown"]))
    assert refused == ("unknown_dependency", "/options/after/0")
    refused = await refusal(world.add_job(done.run_ids[0], Schedule.TEST, after=["job_unknown"]))
    assert refused == ("unknown_dependency", "/after/0")
    assert len(await world.list_jobs()) == 2
    met = await world.submit_one_job(seeds=[2], after=[done.id])
    assert (met.position, met.after) == (1, [])
    assert (await world.submit_one_job(seeds=[3], after=[failed.id], on="any")).position == 2


async def test_a_job_of_another_project_is_like_an_unknown_one(
    world: World, database: Database
) -> None:
    job = await world.submit_one_job(seeds=[0])
    other = await world.submit_one_job(seeds=[1])
    async with database.write() as session:
        await _move_to_other_project(session, await session.get_one(JobRow, job.id))
    refused = await refusal(world.submit(seeds=[2], after=[other.id, job.id]))
    assert refused == ("unknown_dependency", "/options/after/1")


async def _move_to_other_project(session: Any, job: JobRow) -> None:
    from app.db.models import ProjectRow
    from tests.support.queue_steps import move_to_project

    session.add(ProjectRow(id="prj_games", slug="games", name="games"))
    await session.flush()
    await move_to_project(session, job, "prj_games")


async def test_a_training_is_evaluated_and_exported(world: World) -> None:
    await world.submit(seeds=[0, 1], then=["evaluate", "export"])
    jobs = await world.list_jobs()
    by_run: dict[str, list[Any]] = {}
    for job in jobs:
        by_run.setdefault(job.run_ids[0], []).append(job)
    assert len(jobs) == 6
    for chain in by_run.values():
        train, evaluate, export = (
            next(job for job in chain if job.schedule is schedule)
            for schedule in (Schedule.TRAIN, Schedule.EVALUATE, Schedule.EXPORT)
        )
        assert (train.after, evaluate.after, export.after) == ([], [train.id], [evaluate.id])
    await world.submit(seeds=[0, 1], then=["evaluate", "export"])
    assert len(await world.list_jobs()) == 6


async def test_an_evaluation_without_a_snapshot_fails_with_its_reason(world: World) -> None:
    train = await world.submit_one_job(seeds=[0])
    later = await world.add_job(train.run_ids[0], Schedule.EVALUATE, after=[train.id], on="any")
    export = await world.add_job(train.run_ids[0], Schedule.EXPORT, after=[later.id])
    await finish(world, train.id, Outcome.FAILED)
    failed = await world.job(later.id)
    assert (failed.state, failed.cause) == (JobState.FAILED, Cause.NO_RESULT)
    assert failed.failure is not None
    assert "no verified snapshot" in failed.failure.message
    assert (await world.job(export.id)).state is JobState.CANCELLED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"then": ["evaluate", "evaluate"]}, "twice"),
        ({"then": ["evaluate"], "schedule": "test"}, "test is not"),
    ],
)
async def test_a_template_that_means_nothing_is_refused(
    world: World, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        await world.submit(seeds=[0], **options)
