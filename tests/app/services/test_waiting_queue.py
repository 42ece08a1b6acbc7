"""The waiting jobs of a pool, page by page in the order in which they will start."""

from typing import Any

import pytest

from app.domain.errors import InvalidError, NotFoundError
from app.domain.paging import PageRequest, encode_cursor
from app.services import waiting_queue
from app.services.queue import queue_facts
from app.services.waiting_queue import QueueFilter
from palestra.contract.names import PriorityClass
from palestra.contract.waiting_queue import WaitingQueueView
from tests.app.services.test_pools import make_other_project, submit_definition
from tests.support.server_fixture import World, make_definition

INTERACTIVE = {"priority_class": "interactive", "limits": {"wall_seconds": 600}}


async def read(
    world: World, limit: int = 50, cursor: str | None = None, **wanted: Any
) -> WaitingQueueView:
    async with world.database.read() as session:
        return await waiting_queue.list_waiting(
            session,
            world.admin,
            "default",
            PageRequest(limit=limit, cursor=cursor),
            QueueFilter(**wanted),
        )


async def read_all(world: World, limit: int, **wanted: Any) -> list[str]:
    """Returns the IDs of all pages."""
    page = await read(world, limit, **wanted)
    found = [job.id for job in page.items]
    while page.next_cursor is not None:
        page = await read(world, limit, page.next_cursor, **wanted)
        assert page.items
        found += [job.id for job in page.items]
    return found


async def test_assigned_jobs_come_first_then_places_then_the_others(world: World) -> None:
    large = await world.submit_one_job(seeds=[1], resources={"gpus": 8})
    worker = (await world.register(slots=1)).worker_id
    last = await world.submit_one_job(seeds=[0], priority_class="idle")
    middle = await world.submit_one_job(seeds=[2])
    first = await world.submit_one_job(seeds=[3], **INTERACTIVE)
    assigned = await world.submit_one_job(seeds=[4])
    await world.assign(assigned.id, worker)
    page = await read(world)
    assert [job.id for job in page.items] == [assigned.id, first.id, middle.id, last.id, large.id]
    assert [job.position for job in page.items] == [1, 2, 3, 4, None]
    assert [(lane.priority_class, lane.waiting) for lane in page.lanes] == [
        (PriorityClass.INTERACTIVE, 1),
        (PriorityClass.URGENT, 0),
        (PriorityClass.NORMAL, 3),
        (PriorityClass.IDLE, 1),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 9])
async def test_pages_hold_every_job_once(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Also where only the first jobs have a place."""
    monkeypatch.setattr(queue_facts, "MAX_PLACES", 3)
    await world.submit(seeds=[*range(6)])
    other = make_definition(loop={"env_steps": 11})
    await world.submit(other, seeds=[0, 1], priority_class="idle")
    whole = [job.id for job in (await read(world)).items]
    assert len(set(whole)) == 8
    assert await read_all(world, limit) == whole
    idle = [job.id for job in (await read(world, priority_class=PriorityClass.IDLE)).items]
    assert await read_all(world, limit, priority_class=PriorityClass.IDLE) == idle == whole[6:]


async def test_a_page_goes_on_where_the_page_before_ended(world: World) -> None:
    """With offsets, a job that starts would hide another one."""
    await world.submit(seeds=[*range(4)])
    whole = [job.id for job in (await read(world)).items]
    page = await read(world, 2)
    await world.pause(whole[0])
    rest = await read(world, 2, page.next_cursor)
    assert [job.id for job in rest.items] == whole[2:]


async def test_persons_and_their_numbers(world: World) -> None:
    await world.submit(seeds=[0, 1])
    await world.submit(seeds=[2], by=world.other)
    theirs = await read(world, user="bea")
    assert [job.created_by for job in theirs.items] == ["bea"]
    assert [(lane.waiting, lane.mine) for lane in theirs.lanes][2] == (3, 2)
    assert (await read(world, user="nobody")).items == []
    assert len((await read(world, project="default")).items) == 3
    assert (await read(world, project="nowhere")).items == []


async def test_jobs_of_other_projects_count_for_the_places_alone(world: World) -> None:
    await submit_definition(world, await make_other_project(world))
    mine = await world.submit_one_job(seeds=[0])
    page = await read(world)
    assert [job.id for job in page.items] == [mine.id]
    assert [job.position for job in page.items] == [2]
    assert sum(lane.waiting for lane in page.lanes) == 1


@pytest.mark.parametrize(
    "cursor",
    ["x", encode_cursor("queue", ("front x",), "a"), encode_cursor("queue", ("2 9x",), "a")],
)
async def test_a_bad_cursor_is_refused(world: World, cursor: str) -> None:
    with pytest.raises(InvalidError) as refusal:
        await read(world, cursor=cursor)
    assert refusal.value.code == "invalid_cursor"


async def test_the_queue_of_an_unknown_pool_does_not_exist(world: World) -> None:
    async with world.database.read() as session:
        with pytest.raises(NotFoundError):
            await waiting_queue.list_waiting(
                session, world.other, "nowhere", PageRequest(), QueueFilter()
            )
