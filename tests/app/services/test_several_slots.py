"""Attempts on several slots of one worker, from the assignment to the ledger."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.daemons.dispatcher import Dispatcher
from app.db.engine import Database
from app.db.models import UsageEntryRow
from app.db.repositories import assignments
from app.domain.errors import ConflictError, InvalidError
from app.domain.principal import Principal
from app.services.attempts import adoption, claims
from app.services.jobs import explanation
from app.services.jobs.dispatch_plan import AssignedJob
from app.services.workers import workers
from palestra.contract.queue import JobExplanation, WaitReason
from palestra.contract.resources import JobView
from palestra.contract.states import Cause, JobState, Outcome
from palestra.contract.work_order import Adoption, Claim
from tests.app.services.test_pools import make_other_project, submit_definition
from tests.support.server_fixture import World, advance_clock

both_databases = pytest.mark.both_databases(
    "Claims lock the row of a worker on PostgreSQL, where transactions write concurrently.",
    of=("app.db.repositories.workers",),
)

LIMIT = {"wall_seconds": 600, "grace_seconds": 10}


@dataclass
class RecordingQueue:
    """Records the dispatch messages that it receives."""

    sent: list[AssignedJob] = field(default_factory=list)

    def send(self, job: AssignedJob) -> None:
        self.sent.append(job)

    def take(self) -> dict[str, int]:
        """Returns the slots of the jobs that were dispatched since the last call, by job ID."""
        found = {job.job_id: job.slots for job in self.sent}
        self.sent.clear()
        return found


@pytest.fixture
def queue() -> RecordingQueue:
    return RecordingQueue()


@pytest.fixture
def dispatcher(database: Database, queue: RecordingQueue) -> Dispatcher:
    return Dispatcher(database, queue, assignment_seconds=30)


def make_gpus(count: int) -> list[dict[str, Any]]:
    return [{"index": index, "name": "g", "memory_mib": 1} for index in range(count)]


async def register(world: World, *, slots: int = 4, gpus: int = 4, **changes: Any) -> str:
    values = {"takes_several_slots": True, **changes}
    return (await world.register(slots=slots, gpus=make_gpus(gpus), **values)).worker_id


async def submit(world: World, gpus: int, seed: int, **options: Any) -> JobView:
    return await world.submit_one_job(
        seeds=[seed], resources={"gpus": gpus}, limits=LIMIT, **options
    )


async def read_free_slots(world: World) -> int:
    async with world.database.read() as session:
        (worker,) = await assignments.list_worker_slots(session, ["default"])
    return worker.free_slots


async def test_a_job_gets_as_many_slots_as_hold_its_gpus(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = await register(world)
    large, small = await submit(world, 3, 0), await submit(world, 1, 1)
    await dispatcher.tick()
    assert queue.take() == {large.id: 3, small.id: 1}
    assert await read_free_slots(world) == 0, "assigned slots are not free"
    claimed = await world.start(large.id, worker, slot=0, further_slots=(1, 3))
    await world.start(small.id, worker, slot=2)
    assert await read_free_slots(world) == 0
    (attempt,) = (await world.run(large.run_ids[0])).attempts
    assert (attempt.slot, attempt.slots) == (0, [0, 1, 3])
    async with world.database.read() as session:
        shown = (await workers.get(session, world.admin, worker)).slots
    assert [slot.job_id for slot in shown] == [large.id, large.id, small.id, large.id]
    assert {slot.attempt_id for slot in shown if slot.job_id == large.id} == {attempt.id}
    await world.release(claimed.work_order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    assert await read_free_slots(world) == 3


async def test_a_worker_of_the_version_before_gets_one_slot_for_each_attempt(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = await register(world, takes_several_slots=False)
    first, second = await submit(world, 4, 0), await submit(world, 2, 1)
    await dispatcher.tick()
    assert queue.take() == {first.id: 1, second.id: 1}
    await world.start(first.id, worker, slot=0)
    assert await read_free_slots(world) == 2


async def test_a_claim_has_the_slots_that_were_assigned(
    world: World, dispatcher: Dispatcher
) -> None:
    worker = await register(world)
    job = await submit(world, 2, 0)
    await dispatcher.tick()
    for further, code in (((), "not_assigned"), ((1, 2), "not_assigned")):
        with pytest.raises(ConflictError) as refused:
            await claim_assigned(world, job.id, worker, *further)
        assert refused.value.code == code
    for wrong, code, pointer in (
        ((4,), "unknown_slot", "/further_slots/0"),
        ((1, 9), "unknown_slot", "/further_slots/1"),
        ((0,), "repeated_slot", "/further_slots"),
    ):
        with pytest.raises(InvalidError) as invalid:
            await claim_assigned(world, job.id, worker, *wrong)
        assert (invalid.value.code, invalid.value.pointer) == (code, pointer)
    first = await claim_assigned(world, job.id, worker, 1)
    again = await claim_assigned(world, job.id, worker, 1)
    assert first == again, "a repeated claim gets the same lease"
    with pytest.raises(ConflictError) as other:
        await claim_assigned(world, job.id, worker, 2)
    assert other.value.code == "not_claimable"


async def claim_assigned(world: World, job_id: str, worker: str, *further: int) -> str:
    """Claims slot 0 and others without changing the assignment; returns the attempt's token."""
    body = Claim(job_id=job_id, expected_attempt=1, worker_id=worker, slot=0, further_slots=further)
    async with world.database.write() as session:
        return (await claims.claim(session, world.own[worker], body, world.settings)).token


@both_databases
@pytest.mark.parametrize(
    ("slot", "further", "busy"),
    [(1, (), [1]), (2, (), [2]), (0, (), [0]), (1, (3,), [1]), (2, (0,), [0, 2]), (3, (2,), [2])],
)
async def test_a_slot_of_an_attempt_with_several_is_not_claimed_again(
    world: World, slot: int, further: tuple[int, ...], busy: list[int]
) -> None:
    worker = await register(world)
    large, other = await submit(world, 3, 0), await submit(world, 1, 1)
    claimed = await world.start(large.id, worker, slot=0, further_slots=(1, 2))
    with pytest.raises(ConflictError) as refused:
        await world.claim(other.id, worker, slot=slot, further_slots=further)
    assert refused.value.code == "slot_busy"
    assert refused.value.extra["busy_slots"] == busy
    await world.release(claimed.work_order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    await world.claim(other.id, worker, slot=slot, further_slots=further)


async def test_other_jobs_end_before_a_job_on_several_slots_begins(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    """Backfill: slots that are kept for a job are used until it can start, and no longer."""
    worker = await register(world, slots=2, gpus=2)
    running = await submit(world, 1, 0)
    await dispatcher.tick()
    attempt = (await world.start(running.id, worker, slot=0)).work_order.attempt_id
    queue.take()
    large = await submit(world, 2, 1)
    await dispatcher.tick()
    too_long = await submit(world, 1, 2)
    endless = await world.submit_one_job(seeds=[3], resources={"gpus": 1})
    assert await dispatcher.tick() == 0, "slot 1 is kept for the job that needs both"
    short = await world.submit_one_job(
        seeds=[4], resources={"gpus": 1}, limits={"wall_seconds": 300, "grace_seconds": 10}
    )
    await dispatcher.tick()
    assert queue.take() == {short.id: 1}, "it ends before the running job has to"
    of_short = (await world.start(short.id, worker, slot=1)).work_order.attempt_id
    advance_clock(310)
    await world.send_heartbeat(worker)
    await world.release(of_short, Outcome.SUCCEEDED, Cause.BUDGET)
    assert await dispatcher.tick() == 0
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)
    await dispatcher.tick()
    assert queue.take() == {large.id: 2}
    of_large = await world.start(large.id, worker, slot=0, further_slots=(1,))
    await world.release(of_large.work_order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    await dispatcher.tick()
    assert queue.take() == {too_long.id: 1, endless.id: 1}


async def test_explanations_name_the_worker_whose_slots_are_kept_and_until_when(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = await register(world, slots=2, gpus=2)
    running = await submit(world, 1, 0)
    await dispatcher.tick()
    await world.start(running.id, worker, slot=0)
    large, other = await submit(world, 2, 1), await submit(world, 1, 2)
    (attempt,) = (await world.run(running.run_ids[0])).attempts
    until = attempt.started_at + timedelta(seconds=610)
    found = await explain(world, large.id)
    assert found.reason is WaitReason.SLOTS_BUSY
    assert found.sentence == (
        "Needs several slots of one worker at the same time: free slots of the worker w1 are kept "
        f"for it, and it starts there by {until:%Y-%m-%d %H:%M} UTC at the latest."
    )
    found = await explain(world, other.id)
    assert found.reason is WaitReason.RESERVED
    assert found.sentence == (
        f"The free slots of the worker w1 that it could use are kept for the job {large.id}, which "
        f"needs several: that starts there by {until:%Y-%m-%d %H:%M} UTC at the latest. Starts "
        "after that job, or before it with a limits.wall_seconds that ends by then."
    )
    await world.cancel(large.id)
    assert (await explain(world, other.id)).reason is WaitReason.STARTS_NOW
    await dispatcher.tick()
    assert queue.take().keys() == {running.id, other.id}


async def test_an_explanation_says_that_a_time_is_not_known_and_names_no_foreign_job(
    world: World, dispatcher: Dispatcher
) -> None:
    worker = await register(world, slots=2, gpus=2)
    member = await make_other_project(world)
    endless = await submit_definition(world, member, seeds=[0], resources={"gpus": 1})
    await dispatcher.tick()
    await world.start(endless.id, worker, slot=0)
    advance_clock(5)
    large = await submit(world, 2, 1)
    other = await submit_definition(world, member, seeds=[1], resources={"gpus": 1})
    assert "a job there has no time limit" in (await explain(world, large.id)).sentence
    found = await explain(world, other.id, member)
    assert found.reason is WaitReason.RESERVED
    assert "kept for a job of another project" in found.sentence
    assert "when that starts is not known" in found.sentence
    assert large.id not in found.sentence


async def explain(world: World, job_id: str, by: Principal | None = None) -> JobExplanation:
    async with world.database.read() as session:
        return await explanation.explain(session, by or world.admin, job_id)


@both_databases
async def test_an_attempt_that_is_being_claimed_holds_the_locks_of_all_its_slots(
    world: World,
) -> None:
    worker = await register(world)
    job = await submit(world, 2, 0)
    await world.claim(job.id, worker, slot=1, further_slots=(2,))
    advance_clock(2.5 * world.settings.heartbeat_seconds)
    await world.send_heartbeat(worker, live=(), busy=(0, 1, 2))
    assert (await world.job(job.id)).state is JobState.STARTING
    await world.send_heartbeat(worker, live=(), busy=(0, 1))
    assert (await world.job(job.id)).state is JobState.QUEUED


async def test_an_adopted_attempt_gets_all_its_slots(world: World) -> None:
    worker = await register(world)
    job = await submit(world, 2, 0)
    attempt = (await world.start(job.id, worker, slot=1, further_slots=(3,))).work_order.attempt_id
    async with world.database.write() as session:
        answer = await adoption.adopt(
            session, world.own[worker], attempt, Adoption(worker_id=worker), world.settings
        )
    assert (answer.slot, answer.further_slots) == (1, (3,))


async def test_the_devices_of_all_slots_are_charged(world: World, database: Database) -> None:
    worker = await register(world)
    job = await submit(world, 3, 0)
    claimed = await world.start(job.id, worker, slot=0, further_slots=(1, 2))
    advance_clock(60)
    await world.release(claimed.work_order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    async with database.read() as session:
        (entry,) = (await session.scalars(select(UsageEntryRow))).all()
    assert (entry.devices, entry.is_gpu) == (3, True)
    assert 60 <= (entry.ended_at - entry.started_at).total_seconds() < 75
