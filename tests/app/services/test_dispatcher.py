import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest
from sqlalchemy import update

from app.bus import MemoryBus, publish_all
from app.daemons.dispatcher import Dispatcher, DispatchError
from app.db.engine import Database
from app.db.models import JobRow, WorkerRow
from app.domain.errors import ConflictError
from app.services.attempts import claims
from app.services.jobs import dispatch_plan, jobs
from app.services.jobs.dispatch_plan import AssignedJob
from app.services.queue.equipped_workers import EquippedWorkers
from palestra.contract.states import Cause, JobState, Outcome
from palestra.contract.work_order import Claim
from tests.support.server_fixture import World, advance_clock
from tests.support.waiting import until


@dataclass
class RecordingQueue:
    """Records the dispatch messages that it receives; can be set to fail."""

    sent: list[AssignedJob] = field(default_factory=list)
    broken: bool = False

    def send(self, job: AssignedJob) -> None:
        if self.broken:
            raise DispatchError("broken")
        self.sent.append(job)

    @property
    def jobs(self) -> list[str]:
        return [job.job_id for job in self.sent]


@pytest.fixture
def queue() -> RecordingQueue:
    return RecordingQueue()


@pytest.fixture
def dispatcher(database: Database, queue: RecordingQueue) -> Dispatcher:
    return Dispatcher(database, queue, assignment_seconds=30)


async def test_one_dispatch_message_is_sent_per_free_slot(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.submit(seeds=list(range(6)))
    assert await dispatcher.tick() == 0
    worker = (await world.register(slots=2)).worker_id
    assert await dispatcher.tick() == 2
    assert await dispatcher.tick() == 0
    first, second = queue.sent
    attempt = (await world.start(first.job_id, worker, slot=0)).work_order.attempt_id
    assert await dispatcher.tick() == 0
    await world.start(second.job_id, worker, slot=1)
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    assert await dispatcher.tick() == 1
    assert [job.expected_attempt for job in queue.sent] == [1, 1, 1]


async def test_an_unanswered_dispatch_message_is_sent_again_indefinitely(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job()
    assert await dispatcher.tick() == 1
    for _ in range(3):
        advance_clock(15)
        await beat(world)
        assert await dispatcher.tick() == 0
        advance_clock(16)
        await beat(world)
        assert await dispatcher.tick() == 1
    assert queue.jobs == [job.id] * 4


async def beat(world: World) -> None:
    async with world.database.read() as session:
        from app.services.workers import workers

        found = (await workers.list_workers(session, world.admin)).items
    for worker in found:
        await world.send_heartbeat(worker.id)


async def test_duplicate_dispatch_messages_start_one_attempt(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = (await world.register(slots=10)).worker_id
    await world.submit_one_job()
    await dispatcher.tick()
    (message,) = queue.sent
    answers = await asyncio.gather(
        *(
            world.claim(message.job_id, worker, attempt=message.expected_attempt, slot=slot)
            for slot in range(10)
        ),
        return_exceptions=True,
    )
    assert sum(not isinstance(answer, BaseException) for answer in answers) == 1
    assert all(
        isinstance(answer, ConflictError) for answer in answers if isinstance(answer, BaseException)
    )


async def test_an_unreachable_broker_loses_no_dispatch(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.register()
    job = await world.submit_one_job()
    queue.broken = True
    with pytest.raises(DispatchError):
        await dispatcher.tick()
    queue.broken = False
    assert await dispatcher.tick() == 1
    assert queue.jobs == [job.id]


async def test_an_assignment_whose_message_was_never_sent_is_made_again(
    world: World, database: Database, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = (await world.register(slots=1)).worker_id
    job = await world.submit_one_job()
    async with database.read() as session:
        decisions = await dispatch_plan.decide(session, EquippedWorkers())
    async with database.write() as session:
        (assigned,) = await dispatch_plan.assign(session, decisions, 30)
    assert (assigned.job_id, assigned.queue) == (job.id, f"palestra.pool.default.{worker}")
    assert await dispatcher.tick() == 0
    # A dispatcher that takes the lease sends the messages of the one before again, once.
    assert await dispatcher.tick() == 0
    assert queue.jobs == [job.id]
    advance_clock(31)
    await world.send_heartbeat(worker)
    assert await dispatcher.tick() == 1
    assert queue.jobs == [job.id, job.id]


async def test_a_job_that_was_cancelled_after_the_decision_is_not_assigned(
    world: World, database: Database
) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job()
    async with database.read() as session:
        decisions = await dispatch_plan.decide(session, EquippedWorkers())
    async with database.write() as session:
        await jobs.cancel(session, world.admin, job.id)
    async with database.write() as session:
        assert await dispatch_plan.assign(session, decisions, 30) == []


async def test_a_job_that_is_not_assigned_to_a_worker_cannot_be_claimed_by_it(
    world: World, database: Database, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    first = (await world.register(slots=1)).worker_id
    job = await world.submit_one_job()
    with pytest.raises(ConflictError, match="not assigned"):
        await claim_unassigned(world, job.id, first)
    await dispatcher.tick()
    second = (await world.register(name="second", slots=1)).worker_id
    with pytest.raises(ConflictError, match="not assigned"):
        await claim_unassigned(world, job.id, second)
    await claim_unassigned(world, job.id, first)


async def claim_unassigned(world: World, job_id: str, worker_id: str) -> None:
    body = Claim(job_id=job_id, expected_attempt=1, worker_id=worker_id, slot=0)
    async with world.database.write() as session:
        await claims.claim(session, world.own[worker_id], body, world.settings)


async def test_workers_of_the_version_before_share_the_queue_of_their_pool(
    world: World, database: Database, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    names = [(await world.register(name=name, slots=1)).worker_id for name in ("one", "two")]
    async with database.write() as session:
        await session.execute(update(WorkerRow).values(queue="palestra.pool.default"))
    job = await world.submit_one_job()
    await dispatcher.tick()
    (message,) = queue.sent
    assert message.queue == "palestra.pool.default"
    # Either worker may take the message.
    async with database.read() as session:
        row = await session.get_one(JobRow, job.id)
    (other,) = set(names) - {row.assigned_worker_id}
    await claim_unassigned(world, job.id, other)


async def test_jobs_are_ordered_by_usage_of_their_persons_then_own_priority_then_age(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.submit(seeds=[0, 1, 2])
    await world.submit(seeds=[10], by=world.other)
    await world.submit(seeds=[20], priority=5)
    queued = await world.list_jobs()
    seeds = {job.id: (await world.run(job.run_ids[0])).seed for job in queued}
    assert [seeds[job.id] for job in sorted(queued, key=lambda job: job.position or 0)] == [
        20,
        10,
        0,
        1,
        2,
    ]
    await world.register(slots=3)
    await dispatcher.tick()
    assert [seeds[job_id] for job_id in queue.jobs] == [20, 10, 0]


async def test_users_with_running_jobs_come_after_users_without(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = (await world.register(slots=2)).worker_id
    running = await world.submit_one_job()
    await world.start(running.id, worker)
    await world.submit(seeds=[1])
    await world.submit(seeds=[10], by=world.other)
    mine, theirs = (await world.list_jobs(state=JobState.QUEUED))[:2]
    assert theirs.position == 1
    assert mine.position == 2
    await dispatcher.tick()
    assert queue.jobs == [theirs.id]


async def test_only_workers_that_can_take_a_job_are_chosen(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.submit_one_job(resources={"gpus": 1})
    await world.register()
    small = (await world.submit(seeds=[4]))[0]
    (job,) = [
        found
        for found in await world.list_jobs(experiment_id=small.id)
        if found.resources.gpus == 0
    ]
    await dispatcher.tick()
    assert queue.jobs == [job.id]
    large = next(found for found in await world.list_jobs() if found.resources.gpus == 1)
    assert large.waiting is not None
    assert "offers 1 GPUs" in large.waiting


async def test_offline_and_draining_workers_are_not_chosen(
    world: World, dispatcher: Dispatcher, database: Database
) -> None:
    from app.services.workers import workers

    worker = (await world.register()).worker_id
    await world.submit_one_job()
    advance_clock(31)
    assert await dispatcher.tick() == 0
    await world.send_heartbeat(worker)
    async with database.write() as session:
        await workers.drain(session, world.admin, worker)
    assert await dispatcher.tick() == 0
    async with database.write() as session:
        await workers.drain(session, world.admin, worker, draining=False)
    assert await dispatcher.tick() == 1


async def test_a_commit_wakes_the_dispatcher(
    world: World, database: Database, queue: RecordingQueue
) -> None:
    await world.register()
    first = await world.submit_one_job()
    dispatcher = Dispatcher(database, queue, assignment_seconds=30, poll_seconds=3_600)
    bus = MemoryBus()
    database.listeners.append(partial(publish_all, bus))
    work = asyncio.create_task(dispatcher.run(bus))
    try:
        await until(lambda: queue.jobs == [first.id], "the dispatcher runs")
        job = await world.submit_one_job(seeds=[1])
        await until(lambda: queue.jobs == [first.id, job.id])
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
