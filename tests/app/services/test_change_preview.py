"""Previews of changes of waiting jobs: they say what the change then does, and write nothing."""

from typing import Any

import pytest
from sqlalchemy import func, select

from app.db.models import Base
from app.domain.errors import ConflictError, ForbiddenError
from app.domain.principal import Principal
from app.services.jobs import change_preview
from palestra.contract.change_preview import ChangePreview
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_batches import JobsAction
from palestra.contract.job_changes import JobChange
from tests.app.services.test_job_batches import act
from tests.app.services.test_start_estimates import finish_some
from tests.app.services.test_waiting_jobs import change, names_in_order, queue_several, reorder
from tests.support.queue_steps import as_member
from tests.support.server_fixture import World

pytestmark = pytest.mark.asyncio


async def preview_change(
    world: World, job_id: str, by: Principal | None = None, **members: Any
) -> ChangePreview:
    body = JobChange.model_validate_json(encode_canonical_json(members))
    return await change_preview.preview_change(world.database, by or world.admin, job_id, body)


async def preview_order(world: World, job_id: str, before: str | None) -> ChangePreview:
    return await change_preview.preview_order(world.database, world.admin, job_id, before)


async def preview_action(world: World, action: str, **document: Any) -> ChangePreview:
    body = JobsAction.model_validate_json(encode_canonical_json({"action": action, **document}))
    return await change_preview.preview_action(world.database, world.admin, body, lambda: 0.0)


async def count_rows(world: World) -> dict[str, int]:
    async with world.database.read() as session:
        return {
            table.name: await session.scalar(select(func.count()).select_from(table)) or 0
            for table in Base.metadata.sorted_tables
        }


async def test_a_previewed_move_is_what_the_move_then_does(world: World) -> None:
    first, second, third, fourth = await queue_several(world, 4)
    rows = await count_rows(world)
    found = await preview_order(world, fourth, second)
    assert await names_in_order(world) == [first, second, third, fourth]
    assert await count_rows(world) == rows
    assert [(one.job_id, one.place, one.new_place) for one in found.starts] == [(fourth, 4, 2)]
    assert [(one.job_id, one.place, one.new_place) for one in found.own_starts] == [
        (second, 2, 3),
        (third, 3, 4),
    ]
    assert (found.jobs, found.own.later, found.own.earlier) == (1, 2, 0)
    assert found.sentence == (
        "Would have place 2 in the queue instead of 4; 2 other jobs of yours start later."
    )
    await reorder(world, fourth, second)
    assert await names_in_order(world) == [first, fourth, second, third]


async def test_the_starts_are_those_that_the_change_gives(world: World) -> None:
    worker = (await world.register(slots=1)).worker_id
    await finish_some(world, worker, 600, range(10, 16))
    running = await world.submit_one_job(seeds=[20])
    await world.start(running.id, worker)
    first, second = await queue_several(world, 2)
    found = await preview_change(world, second, priority=9)
    (one,) = found.starts
    assert one.start.median is not None
    assert one.new_start.median is not None
    assert (one.start.median - one.new_start.median).total_seconds() == pytest.approx(600, rel=0.1)
    assert found.sentence.startswith("Would start in about 10 minutes instead of 20 minutes; ")
    assert found.sentence.endswith("1 other job of yours starts later.")
    assert [one.job_id for one in found.own_starts] == [first]
    await change(world, second, priority=9)
    again = await preview_change(world, second, priority=9)
    assert again.starts[0].start.median is not None
    assert again.starts[0].new_start.median is not None
    between = again.starts[0].start.median - again.starts[0].new_start.median
    assert abs(between.total_seconds()) < 1
    assert again.sentence == "Would start in about 10 minutes, as it does now."
    moved = (again.starts[0].start.median - one.new_start.median).total_seconds()
    assert abs(moved) < 60


async def test_jobs_of_other_people_are_counted_not_named(world: World) -> None:
    await world.submit(seeds=[100, 101], by=world.other)
    (own,) = [(await world.submit_one_job(seeds=[1])).id]
    found = await preview_change(world, own, priority_class="urgent")
    assert found.starts[0].new_place == 1
    assert found.own_starts == ()
    assert (found.own.later, found.others.earlier) == (0, 0)
    assert found.others.later == found.starts[0].place - 1  # type: ignore[operator]
    assert "of other people" in found.sentence


async def test_a_preview_is_refused_like_the_change(world: World) -> None:
    await world.submit(seeds=[0], by=world.other)
    (job,) = await world.list_jobs()
    member = as_member(world)
    with pytest.raises(ForbiddenError) as forbidden:
        await preview_change(world, job.id, member, priority_class="urgent")
    assert forbidden.value.code == "class_not_permitted"
    await world.pause(job.id)
    with pytest.raises(ConflictError) as refused:
        await preview_change(world, job.id, priority=1)
    assert refused.value.code == "not_waiting"


async def test_a_held_job_has_no_place_and_the_preview_says_why(world: World) -> None:
    await world.register()
    limits = {"wall_seconds": 600}
    first, second = await queue_several(world, 2, limits=limits)
    await change(world, first, priority_class="interactive")
    worker = (await world.register()).worker_id
    await world.start(first, worker)
    found = await preview_change(world, second, priority_class="interactive")
    assert found.starts[0].new_place is None
    assert found.sentence.startswith("Would have no place in the queue. ")
    assert "interactive" in found.sentence


async def test_an_action_on_many_jobs_is_previewed(world: World) -> None:
    first, second, third, fourth = await queue_several(world, 4)
    rows = await count_rows(world)
    left = await preview_action(world, "cancel", selection={"jobs": [first, second]})
    assert (left.jobs, left.own.earlier) == (2, 2)
    assert left.sentence == "2 jobs would leave the queue; 2 other jobs of yours start earlier."
    assert [(one.place, one.new_place) for one in left.starts] == [(1, None), (2, None)]
    body: dict[str, Any] = {
        "selection": {"jobs": [third, fourth]},
        "change": {"priority_class": "urgent"},
        "dry_run": True,
    }
    found = await preview_action(world, "change", **body)
    assert [(one.job_id, one.new_place) for one in found.starts] == [(third, 1), (fourth, 2)]
    assert found.own.later == 2
    assert await count_rows(world) == rows
    await act(world, "change", jobs=[third, fourth], change={"priority_class": "urgent"})
    assert await names_in_order(world) == [third, fourth, first, second]


async def test_a_preview_takes_the_jobs_of_one_request(world: World) -> None:
    await world.submit(seeds=[*range(103)])
    found = await preview_action(world, "pause", selection={})
    assert (found.jobs, found.jobs_left, len(found.starts)) == (100, 3, 20)
    none = await preview_action(world, "pause", selection={"jobs": ["job_unknown"]})
    assert (none.jobs, none.starts) == (0, ())
    assert none.sentence.startswith("Nothing would change")
