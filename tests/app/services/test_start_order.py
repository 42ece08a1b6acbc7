"""The queue of a pool in the database: what is read, and who starts next."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from app.daemons.dispatcher import Dispatcher
from app.db.clock import now
from app.db.engine import Database
from app.db.models import (
    AttemptRow,
    JobRow,
    MembershipRow,
    ProjectPoolRow,
    ProjectRow,
)
from app.db.models.usage import QueueGroupRow
from app.domain.errors import ForbiddenError, InvalidError
from app.services.jobs import dispatch_plan, jobs
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolQueue
from palestra.contract.queue import WaitReason
from palestra.contract.states import JobState
from tests.app.services.test_dispatcher import RecordingQueue, dispatcher, queue
from tests.support.queue_steps import as_member, explain, move_to_project, run_for
from tests.support.server_fixture import World, advance_clock

pytestmark = pytest.mark.both_databases(
    "The queue is read by statements that differ by database.",
    of=(
        "app.db.upsert",
        "app.db.repositories.pool_reads",
        "app.db.repositories.pools",
        "app.db.repositories.queue_groups",
        "app.db.repositories.start_order",
    ),
)


__all__ = ["dispatcher", "queue"]

INTERACTIVE = {"priority_class": "interactive", "limits": {"wall_seconds": 600}}


async def test_past_usage_decides_between_two_persons(
    world: World,
    dispatcher: Dispatcher,
    queue: RecordingQueue,
    passed_seconds: Callable[[], float],
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await run_for(world, (await world.submit_one_job(seeds=[0])).id, worker, 300)
    mine = await world.submit_one_job(seeds=[1])
    await world.submit(seeds=[2], by=world.other)
    (theirs,) = [job for job in await world.list_jobs(state=JobState.QUEUED) if job.id != mine.id]
    assert ((await world.job(mine.id)).position, theirs.position) == (2, 1)
    await world.send_heartbeat(worker)
    await dispatcher.tick()
    assert queue.jobs == [theirs.id]
    found = await explain(world, mine.id)
    assert found.terms is not None
    assert found.terms.user_usage == pytest.approx(300, abs=passed_seconds())
    assert found.terms.project_usage == pytest.approx(360, abs=passed_seconds())
    assert found.terms.project_share == 1.0


async def test_a_lost_machine_keeps_the_place_of_its_job(world: World) -> None:
    worker = (await world.register(slots=1)).worker_id
    first = await world.submit_one_job(seeds=[0])
    await world.start(first.id, worker)
    advance_clock(30)
    await world.submit_one_job(seeds=[1])
    await world.send_heartbeat(worker, live=(), dead=[await live_attempt(world, first.id)])
    async with world.database.read() as session:
        row = await session.get_one(JobRow, first.id)
        later = await session.scalar(select(func.max(JobRow.queued_at)))
    assert row.state == JobState.QUEUED
    assert later is not None
    assert row.queued_at < later


async def live_attempt(world: World, job_id: str) -> str:
    async with world.database.read() as session:
        found = await session.scalar(select(AttemptRow.id).where(AttemptRow.job_id == job_id))
    assert found is not None
    return found


async def test_who_pauses_a_job_gives_up_its_place(world: World, database: Database) -> None:
    await world.register(slots=0 + 1)
    first, second = await world.submit_one_job(seeds=[0]), await world.submit_one_job(seeds=[1])
    async with database.write() as session:
        await jobs.pause(session, world.admin, first.id)
    advance_clock(1)
    async with database.write() as session:
        await jobs.resume(session, world.admin, first.id)
    async with database.write() as session:
        await session.execute(update(JobRow).values(seed_index=0))
    places = {job.id: job.position for job in await world.list_jobs()}
    assert places == {second.id: 1, first.id: 2}


async def test_shares_of_projects_divide_the_slots(world: World, database: Database) -> None:
    async with database.write() as session:
        session.add(ProjectRow(id="prj_games", slug="games", name="games"))
        await session.flush()
        for principal in (world.admin, world.other):
            session.add(
                MembershipRow(project_id="prj_games", user_id=principal.user_id, role="maintainer")
            )
        (admission,) = (await session.scalars(select(ProjectPoolRow))).all()
        admission.share = 3.0
        session.add(ProjectPoolRow(project_id="prj_games", pool_id=admission.pool_id, share=1.0))
    await world.submit(seeds=list(range(20)))
    async with database.write() as session:
        first = (await session.scalars(select(JobRow).order_by(JobRow.id))).all()
        for job in first[:10]:
            await move_to_project(session, job, "prj_games")
    await world.register(slots=8)
    async with database.read() as session:
        (made,) = await dispatch_plan.decide(session, EquippedWorkers())
    taken = Counter(one.job.group.project_id for one in made.made.decision.assignments)
    assert taken == {world.project_id: 6, "prj_games": 2}


async def test_a_person_has_one_interactive_job_at_a_time(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = (await world.register(slots=4)).worker_id
    await world.submit(seeds=[0, 1], **INTERACTIVE)
    await world.submit(seeds=[2], by=world.other, **INTERACTIVE)
    assert await dispatcher.tick() == 2
    assert await dispatcher.tick() == 0
    (waiting,) = [job for job in await world.list_jobs() if job.id not in queue.jobs]
    found = await explain(world, waiting.id)
    assert found.reason is WaitReason.INTERACTIVE_LIMIT
    mine = next(
        job
        for job in await world.list_jobs()
        if job.id in queue.jobs and job.created_by == waiting.created_by
    )
    await run_for(world, mine.id, worker, 1)
    await world.send_heartbeat(worker)
    assert await dispatcher.tick() == 1


async def test_an_interactive_job_needs_a_short_wall_time(world: World) -> None:
    for limits in ({}, {"wall_seconds": 1_801}):
        with pytest.raises(InvalidError) as refused:
            await world.submit(priority_class="interactive", limits=limits)
        assert refused.value.code == "interactive_too_long"
    assert not await world.list_jobs()


async def test_urgent_jobs_are_for_maintainers(world: World) -> None:
    await world.submit_one_job(seeds=[0], priority_class="urgent")
    member = as_member(world)
    with pytest.raises(ForbiddenError) as refused:
        await world.submit(seeds=[1], by=member, priority_class="urgent")
    assert refused.value.code == "class_not_permitted"
    assert len(await world.list_jobs()) == 1


async def test_a_decision_reads_few_jobs_of_a_long_queue(world: World, database: Database) -> None:
    await world.register(slots=1)
    await world.submit(seeds=list(range(200)))
    async with database.read() as session:
        pool = PoolQueue(session, "default", EquippedWorkers())
        assert len((await pool.decide()).decision.assignments) == 1
    assert sum(map(len, pool.loaded.values())) <= 8


async def test_an_empty_group_is_dropped_and_made_again(
    world: World, database: Database, dispatcher: Dispatcher
) -> None:
    worker = (await world.register(slots=2)).worker_id
    job = await world.submit_one_job(seeds=[0])
    await run_for(world, job.id, worker, 1)
    await world.send_heartbeat(worker)
    await dispatcher.tick()
    async with database.read() as session:
        assert (await session.scalars(select(QueueGroupRow))).all() == []
    await world.submit_one_job(seeds=[1])
    assert await dispatcher.tick() == 1


async def test_a_group_of_a_project_that_is_not_admitted_any_more_is_dropped_once_it_is_empty(
    world: World, database: Database, dispatcher: Dispatcher
) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job(seeds=[0])
    async with database.write() as session:
        for row in (await session.scalars(select(ProjectPoolRow))).all():
            await session.delete(row)
    await dispatcher.tick()
    async with database.read() as session:
        assert len((await session.scalars(select(QueueGroupRow))).all()) == 1
    async with database.write() as session:
        await jobs.cancel(session, world.admin, job.id)
    await dispatcher.tick()
    async with database.read() as session:
        assert (await session.scalars(select(QueueGroupRow))).all() == []


async def test_assigned_jobs_have_the_first_places(world: World, dispatcher: Dispatcher) -> None:
    await world.register(slots=1)
    await world.submit(seeds=[0, 1, 2])
    await dispatcher.tick()
    views = sorted(await world.list_jobs(), key=lambda job: job.position or 99)
    assert [job.position for job in views] == [1, 2, 3]
    assert views[0].waiting == "A worker was asked to start it."
    assert "job starts before it" not in (views[1].waiting or "")
    assert "1 job starts before it" in (views[2].waiting or "")


async def test_many_unsuitable_jobs_of_a_person_hide_no_later_one(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.submit(seeds=list(range(100)), resources={"gpus": 4}, priority=5)
    await world.register(slots=1)
    small = await world.submit_one_job(seeds=[1_000])
    await dispatcher.tick()
    assert queue.jobs == [small.id]


async def test_jobs_that_may_not_start_yet_cause_no_writing(
    world: World, database: Database
) -> None:
    """A group whose only job is delayed keeps its row, and the dispatcher has nothing to write."""
    await world.register(slots=1)
    job = await world.submit_one_job()
    async with database.write() as session:
        values = {"not_before": await now(session) + timedelta(hours=1)}
        await session.execute(update(JobRow).where(JobRow.id == job.id).values(**values))
    async with database.read() as session:
        assert await dispatch_plan.decide(session, EquippedWorkers()) == []
        assert len((await session.scalars(select(QueueGroupRow))).all()) == 1
