"""Changes of waiting jobs, and their order among the jobs of the same person."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select, update

from app.db.clock import now
from app.db.engine import Database
from app.db.models import EventRow, JobRow, PoolRow
from app.db.models.usage import QueueGroupRow
from app.domain.errors import DomainError
from app.domain.principal import Principal
from app.services.jobs import waiting_jobs
from app.services.queue.pool_queue import PoolQueue
from palestra.contract.job_changes import JobChange
from palestra.contract.names import PriorityClass
from palestra.contract.resources import JobView
from tests.support.queue_steps import as_member
from tests.support.server_fixture import World, advance_clock

pytestmark = pytest.mark.asyncio

both_databases = pytest.mark.both_databases(
    "Moves lock groups and jobs on PostgreSQL, where transactions write concurrently.",
    of=(
        "app.db.repositories.own_order",
        "app.db.repositories.queue_groups",
    ),
)


async def change(world: World, job_id: str, by: Principal | None = None, **members: Any) -> JobView:
    body = JobChange.model_validate_json(json.dumps(members))
    async with world.database.write() as session:
        return await waiting_jobs.change(session, by or world.admin, job_id, body)


async def reorder(
    world: World, job_id: str, before: str | None, by: Principal | None = None
) -> JobView:
    async with world.database.write() as session:
        return await waiting_jobs.reorder(session, by or world.admin, job_id, before)


async def names_in_order(world: World) -> list[str]:
    async with world.database.read() as session:
        return [job.id for job in await PoolQueue(session, "default").first_jobs(100)]


async def queue_several(world: World, number: int, **options: Any) -> list[str]:
    made = [(await world.submit_one_job(seeds=[seed], **options)).id for seed in range(number)]
    assert await names_in_order(world) == made
    return made


async def refusal(action: Any) -> tuple[str, str | None]:
    with pytest.raises(DomainError) as refused:
        await action
    return refused.value.code, refused.value.pointer


async def test_class_priority_and_limits_of_a_waiting_job_change(
    world: World, database: Database
) -> None:
    first, second, third = await queue_several(world, 3)
    changed = await change(world, third, priority=5, limits={"max_attempts": 3})
    assert (changed.priority, changed.limits.max_attempts, changed.position) == (5, 3, 1)
    assert changed.limits.stall_seconds == 1_800
    changed = await change(world, second, priority_class="idle")
    assert changed.priority_class is PriorityClass.IDLE
    assert await names_in_order(world) == [third, first, second]
    async with database.read() as session:
        classes = set(await session.scalars(select(QueueGroupRow.priority_class)))
        query = select(EventRow.data).where(EventRow.type == "job").order_by(EventRow.id)
        events = (await session.scalars(query)).all()
    assert classes == {"normal", "idle"}
    assert [one["id"] for one in events[-2:]] == [third, second]
    assert events[-1]["priority_class"] == "idle"


async def test_a_wall_time_is_that_of_the_pool_again(world: World, database: Database) -> None:
    async with database.write() as session:
        await session.execute(
            update(PoolRow).values(default_wall_seconds=600, max_wall_seconds=3_600)
        )
    job = await world.submit_one_job(limits={"wall_seconds": 60})
    refused = await refusal(change(world, job.id, limits={"wall_seconds": 3_601}))
    assert refused == ("wall_time_too_long", "/limits/wall_seconds")
    assert (await change(world, job.id, limits={"wall_seconds": 90})).limits.wall_seconds == 90
    assert (await change(world, job.id, limits={"wall_seconds": None})).limits.wall_seconds == 600


async def test_a_class_that_is_not_permitted_is_refused(world: World) -> None:
    member = as_member(world)
    await world.submit(seeds=[0], by=world.other)
    (job,) = await world.list_jobs()
    refused = await refusal(change(world, job.id, member, priority_class="urgent"))
    assert refused[0] == "class_not_permitted"
    refused = await refusal(change(world, job.id, member, priority_class="interactive"))
    assert refused == ("interactive_too_long", "/limits/wall_seconds")
    await change(world, job.id, member, priority_class="interactive", limits={"wall_seconds": 600})
    refused = await refusal(change(world, job.id, member, limits={"wall_seconds": 7_200}))
    assert refused == ("interactive_too_long", "/limits/wall_seconds")
    await change(world, job.id, priority_class="urgent")
    assert (await change(world, job.id, member, priority=3)).priority_class == "urgent"


async def test_only_waiting_jobs_change(world: World) -> None:
    worker = (await world.register(slots=2)).worker_id
    assigned, running, paused, waiting = await queue_several(world, 4)
    await world.assign(assigned, worker)
    await world.start(running, worker)
    await world.pause(paused)
    for job_id, code in (
        (assigned, "already_assigned"),
        (running, "not_waiting"),
        (paused, "not_waiting"),
    ):
        assert await refusal(change(world, job_id, priority=1)) == (code, None)
        assert await refusal(reorder(world, job_id, None)) == (code, None)
        assert await refusal(reorder(world, waiting, job_id)) == (code, "/before")
    advance_clock(31)
    assert (await change(world, assigned, priority=1)).priority == 1


@both_databases
async def test_jobs_move_before_others_and_to_the_end(world: World) -> None:
    first, second, third, fourth = await queue_several(world, 4)
    await reorder(world, fourth, second)
    assert await names_in_order(world) == [first, fourth, second, third]
    await reorder(world, third, first)
    assert await names_in_order(world) == [third, first, fourth, second]
    await reorder(world, third, fourth)
    assert await names_in_order(world) == [first, third, fourth, second]
    await reorder(world, first, None)
    assert await names_in_order(world) == [third, fourth, second, first]


async def test_a_moved_job_takes_the_priority_of_the_other(world: World) -> None:
    high, low, lowest = await queue_several(world, 3)
    for job_id, priority in ((high, 9), (low, 2), (lowest, -4)):
        await change(world, job_id, priority=priority)
    assert (await reorder(world, lowest, high)).priority == 9
    assert await names_in_order(world) == [lowest, high, low]
    assert (await reorder(world, lowest, None)).priority == 2
    assert await names_in_order(world) == [high, low, lowest]
    await change(world, lowest, priority=8)
    await change(world, lowest, priority=2)
    assert await names_in_order(world) == [high, low, lowest]


async def test_every_order_can_be_reached(world: World) -> None:
    expected = await queue_several(world, 5)
    for moved in list(expected):
        for before in [*expected, None]:
            if before == moved:
                continue
            await reorder(world, moved, before)
            expected.remove(moved)
            expected.insert(expected.index(before) if before else len(expected), moved)
            assert await names_in_order(world) == expected


async def test_a_job_moves_before_those_of_others_by_maintainers_alone(world: World) -> None:
    await world.submit(seeds=[0], by=world.other)
    (theirs,) = await world.list_jobs()
    await world.submit(seeds=[1])
    mine = next(job.id for job in await world.list_jobs() if job.id != theirs.id)
    refused = await refusal(reorder(world, theirs.id, mine, as_member(world)))
    assert refused == ("other_persons_job", "/before")
    moved = await reorder(world, mine, theirs.id)
    assert moved.priority_class is PriorityClass.URGENT
    assert await names_in_order(world) == [mine, theirs.id]
    assert await refusal(reorder(world, theirs.id, mine)) == ("order_by_usage", "/before")


async def test_moves_that_mean_nothing_are_refused(world: World) -> None:
    await world.make_pool("other")
    job, idle = await queue_several(world, 2)
    elsewhere = (await world.submit_one_job(seeds=[7], pool="other")).id
    await change(world, idle, priority_class="idle")
    for before, code in (
        (job, "before_itself"),
        ("job_unknown", "unknown_job"),
        (elsewhere, "other_pool"),
        (idle, "other_class"),
    ):
        assert await refusal(reorder(world, job, before)) == (code, "/before")
    assert await refusal(reorder(world, job, None, as_member(world))) == ("not_yours", None)


@both_databases
async def test_moves_at_once_lose_no_job(world: World) -> None:
    made = await queue_several(world, 6)
    await asyncio.gather(*(reorder(world, job_id, made[0]) for job_id in made[1:]))
    found = await names_in_order(world)
    assert sorted(found) == sorted(made)
    assert found[-1] == made[0]


@both_databases
async def test_an_assignment_and_a_move_at_once_do_not_block_each_other(
    world: World, database: Database
) -> None:
    made = await queue_several(world, 4)
    worker = (await world.register(slots=4)).worker_id

    async def assign(jobs: Sequence[str]) -> None:
        async with database.write() as session:
            present = await now(session)
            for job_id in jobs:
                await session.execute(
                    update(JobRow)
                    .where(JobRow.id == job_id, JobRow.assigned_until.is_(None))
                    .values(assigned_worker_id=worker, assigned_until=present)
                )
                await asyncio.sleep(0)

    for _ in range(3):
        await asyncio.gather(assign(made), reorder(world, made[3], made[1]))
        await asyncio.gather(assign(made), reorder(world, made[3], None))
    assert await names_in_order(world) == made


@both_databases
async def test_who_pauses_a_job_gives_up_the_place_that_it_was_moved_to(world: World) -> None:
    first, second = await queue_several(world, 2)
    await reorder(world, second, first)
    await world.pause(second)
    advance_clock(1)
    await world.resume(second)
    assert await names_in_order(world) == [first, second]
