"""Why a waiting job does not start, as its explanation says it."""

import pytest
from sqlalchemy import select, update

from app.daemons.dispatcher import Dispatcher
from app.db.clock import now
from app.db.engine import Database
from app.db.models import (
    JobRow,
    MembershipRow,
    PoolRow,
    ProjectPoolRow,
    ProjectRow,
)
from palestra.contract.queue import WaitReason
from tests.app.services.test_dispatcher import dispatcher, queue
from tests.support.queue_steps import as_member, explain, move_to_project
from tests.support.server_fixture import World, advance_clock

__all__ = ["dispatcher", "queue"]


@pytest.mark.parametrize("how", ["not_admitted", "paused", "none", "offline", "gpus"])
async def test_the_reason_of_a_job_that_cannot_start(
    world: World, database: Database, how: str
) -> None:
    gpus = 2 if how == "gpus" else 0
    job = await world.submit_one_job(resources={"gpus": gpus})
    if how != "none":
        await world.register(slots=1)
    async with database.write() as session:
        if how == "not_admitted":
            for row in (await session.scalars(select(ProjectPoolRow))).all():
                await session.delete(row)
        if how == "paused":
            present = await now(session)
            await session.execute(
                update(PoolRow).values(paused_at=present, pause_reason="new memory")
            )
    if how == "offline":
        advance_clock(600)
    expected = {
        "not_admitted": WaitReason.PROJECT_NOT_ADMITTED,
        "paused": WaitReason.POOL_PAUSED,
        "none": WaitReason.NO_WORKER_REGISTERED,
        "offline": WaitReason.NO_WORKER_ONLINE,
        "gpus": WaitReason.TOO_MANY_GPUS,
    }
    found = await explain(world, job.id)
    assert found.reason is expected[how]
    assert (found.terms is None) == (how == "not_admitted")


async def test_the_explanation_follows_a_job_to_its_end(
    world: World, dispatcher: Dispatcher
) -> None:
    worker = (await world.register(slots=1)).worker_id
    first, second = await world.submit_one_job(seeds=[0]), await world.submit_one_job(seeds=[1])
    found = await explain(world, second.id)
    assert (found.reason, found.ahead, found.own_ahead) == (
        WaitReason.BEHIND_JOBS,
        1,
        (first.id,),
    )
    assert found.sentence == "1 job starts before it."
    assert (await explain(world, first.id)).reason is WaitReason.STARTS_NOW
    await dispatcher.tick()
    assert (await explain(world, second.id)).reason is WaitReason.SLOTS_BUSY
    await world.submit(seeds=[2], priority_class="urgent")
    assigned = await explain(world, first.id)
    assert (assigned.reason, assigned.ahead, assigned.own_ahead) == (WaitReason.ASSIGNED, 0, ())
    await world.start(first.id, worker)
    running = await explain(world, first.id)
    assert (running.reason, running.terms) == (None, None)
    assert "running" in running.sentence


async def test_foreign_jobs_ahead_are_counted_and_not_named(
    world: World, database: Database
) -> None:
    await world.register(slots=1)
    await world.submit(seeds=[0, 1], priority_class="urgent")
    job = await world.submit_one_job(seeds=[2])
    reader = as_member(world)
    assert len((await explain(world, job.id, reader)).own_ahead) == 2
    async with database.write() as session:
        session.add(ProjectRow(id="prj_games", slug="games", name="games"))
        (admission,) = (await session.scalars(select(ProjectPoolRow))).all()
        await session.flush()
        session.add(
            MembershipRow(project_id="prj_games", user_id=world.other.user_id, role="maintainer")
        )
        session.add(ProjectPoolRow(project_id="prj_games", pool_id=admission.pool_id))
        for row in (await session.scalars(select(JobRow))).all():
            if row.id != job.id:
                await move_to_project(session, row, "prj_games")
    found = await explain(world, job.id, reader)
    assert (found.ahead, found.own_ahead) == (2, ())
