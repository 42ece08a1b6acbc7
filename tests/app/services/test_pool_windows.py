"""Maintenance windows and reservations: what starts before and in them, and what is refused."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.db.clock import now
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.domain.queue.windows import PlannedWindow, describe, find_blocking, find_free_time
from app.services.experiments import submission_plan, submission_preview
from app.services.jobs import explanation
from app.services.workers import pool_windows
from palestra.contract.pool_windows import PoolWindowRequest, PoolWindowView, WindowKind
from palestra.contract.queue import JobExplanation, WaitReason
from tests.app.services.test_pools import (
    list_jobs,
    list_planned_jobs,
    make_other_project,
    submit_definition,
)
from tests.support.server_fixture import World, advance_clock, make_submission

HOUR = 3_600


async def plan(world: World, start: float, end: float, **values: Any) -> PoolWindowView:
    """Plans a window that begins and ends so many seconds from now."""
    kind = "reservation" if {"project", "user"} & set(values) else "maintenance"
    async with world.database.write() as session:
        present = await now(session)
        request = PoolWindowRequest(
            **{
                "kind": WindowKind(kind),
                "start": present + timedelta(seconds=start),
                "end": present + timedelta(seconds=end),
                **values,
            }
        )
        return await pool_windows.plan(session, world.admin, "default", request)


async def explain(world: World, job_id: str, by: Principal | None = None) -> JobExplanation:
    async with world.database.read() as session:
        return await explanation.explain(session, by or world.admin, job_id)


async def windows(world: World, by: Principal) -> list[PoolWindowView]:
    async with world.database.read() as session:
        return list((await pool_windows.list_windows(session, by, "default")).items)


def limited(seconds: int) -> dict[str, Any]:
    return {"limits": {"wall_seconds": seconds, "grace_seconds": 60}}


async def test_jobs_start_only_if_they_end_before_the_maintenance(world: World) -> None:
    await world.register(slots=4)
    short = await world.submit_one_job(seeds=[1], **limited(HOUR))
    long = await world.submit_one_job(seeds=[2], **limited(3 * HOUR))
    without = await world.submit_one_job(seeds=[3])
    assert set(await list_planned_jobs(world)) == {short.id, long.id, without.id}
    window = await plan(world, 2 * HOUR, 4 * HOUR, reason="new drivers")
    assert not window.has_begun
    assert await list_planned_jobs(world) == [short.id]
    found = await explain(world, long.id)
    assert found.reason is WaitReason.NOT_FREE_LONG_ENOUGH
    assert found.sentence.startswith(
        f"Maintenance of the pool default from {window.start:%Y-%m-%d %H:%M} to "
        f"{window.end:%Y-%m-%d %H:%M} UTC (new drivers): "
    )
    (listed,) = [job for job in await world.list_jobs() if job.id == long.id]
    assert listed.waiting == found.sentence


async def test_the_preview_of_a_submission_knows_the_windows(world: World) -> None:
    await world.register(slots=4)
    await plan(world, 2 * HOUR, 4 * HOUR)
    reasons = {}
    for seconds in (HOUR, 3 * HOUR):
        body = make_submission(seeds=[1], **limited(seconds))
        async with world.database.write() as session:
            planned = await submission_plan.plan(session, world.admin, body)
        async with world.database.read() as session:
            found = await submission_preview.preview(session, planned)
        reasons[seconds] = found.reason
        assert ("Maintenance of the pool default" in found.sentence) == (seconds > HOUR)
    assert reasons[HOUR] is WaitReason.STARTS_NOW
    assert reasons[3 * HOUR] is WaitReason.NOT_FREE_LONG_ENOUGH


async def test_nothing_starts_in_a_maintenance_and_all_start_after_it(world: World) -> None:
    worker = (await world.register(slots=4)).worker_id
    job = await world.submit_one_job(seeds=[1], **limited(60))
    window = await plan(world, -10, HOUR)
    assert window.has_begun
    assert await list_planned_jobs(world) == []
    assert "Maintenance of the pool default from" in (await explain(world, job.id)).sentence
    advance_clock(HOUR + 1)
    await world.send_heartbeat(worker)
    assert await list_planned_jobs(world) == [job.id]
    assert await windows(world, world.admin) == []


async def test_a_window_of_some_workers_leaves_the_others(world: World) -> None:
    await world.register(slots=1, name="w1")
    await world.register(slots=1, name="w2", boot_id="boot-2")
    jobs = [(await world.submit_one_job(seeds=[seed], **limited(60))).id for seed in (1, 2)]
    await plan(world, -10, HOUR, workers=("w2",))
    assert await list_planned_jobs(world) == jobs[:1]
    await plan(world, -10, HOUR, workers=("w1",))
    assert await list_planned_jobs(world) == []
    assert "of a worker of the pool default from" in (await explain(world, jobs[0])).sentence


async def test_in_a_reservation_only_the_project_starts(world: World) -> None:
    neighbour = await make_other_project(world)
    await world.register(slots=4)
    mine = await world.submit_one_job(seeds=[1], **limited(600))
    theirs = await submit_definition(world, neighbour, seeds=[2])
    assert set(await list_planned_jobs(world)) == {mine.id, theirs.id}
    await plan(world, 60, HOUR, project="other")
    assert await list_planned_jobs(world) == [theirs.id]
    found = await explain(world, mine.id)
    assert found.sentence.startswith("A reservation for others of the pool default from")
    assert "user-of-other" not in found.sentence
    advance_clock(120)
    await world.send_heartbeat(next(iter(world.own)))
    assert await list_planned_jobs(world) == [theirs.id]
    (job,) = await list_jobs(world, neighbour)
    assert job.waiting is not None
    assert "reservation" not in job.waiting


async def test_in_a_reservation_of_a_person_only_their_jobs_start(world: World) -> None:
    await world.register(slots=4)
    mine = await world.submit_one_job(seeds=[1], **limited(600))
    theirs = (await world.submit(seeds=[2], by=world.other))[0]
    await plan(world, -10, HOUR, user="bea")
    (planned,) = await list_planned_jobs(world)
    assert planned != mine.id
    assert (await world.job(planned)).experiment_id == theirs.id


async def test_a_cancelled_window_holds_nothing(world: World) -> None:
    await world.register(slots=1)
    job = await world.submit_one_job(seeds=[1])
    window = await plan(world, -10, HOUR)
    async with world.database.write() as session:
        await pool_windows.cancel(session, world.admin, "default", window.id)
    assert await list_planned_jobs(world) == [job.id]
    with pytest.raises(NotFoundError):
        async with world.database.write() as session:
            await pool_windows.cancel(session, world.admin, "default", window.id)


@pytest.mark.parametrize(
    ("values", "code", "pointer"),
    [
        ({"start": 100, "end": 100}, "window_reversed", "/end"),
        ({"start": -100, "end": -10}, "window_past", "/end"),
        ({"workers": ("w1", "w9")}, "unknown_worker", "/workers/1"),
        ({"kind": WindowKind.RESERVATION}, "holder_needed", "/project"),
        ({"project": "other", "user": "bea"}, "holder_needed", "/project"),
        (
            {"project": "other", "kind": WindowKind.MAINTENANCE},
            "holder_not_allowed",
            "/project",
        ),
        ({"user": "bea", "kind": WindowKind.MAINTENANCE}, "holder_not_allowed", "/user"),
        ({"project": "nowhere"}, "project_not_admitted", "/project"),
        ({"user": "nobody"}, "no_such_user", "/user"),
    ],
)
async def test_faulty_windows_are_refused(
    world: World, values: dict[str, Any], code: str, pointer: str
) -> None:
    await world.register()
    await make_other_project(world)
    times = {"start": 60, "end": HOUR} | values
    others = {name: value for name, value in values.items() if name not in {"start", "end"}}
    with pytest.raises(InvalidError) as refused:
        await plan(world, times["start"], times["end"], **others)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


async def test_reservations_of_a_worker_do_not_overlap(world: World) -> None:
    await world.register(name="w1")
    await world.register(name="w2", boot_id="boot-2")
    first = await plan(world, 60, HOUR, user="bea", workers=("w1",))
    await plan(world, 60, HOUR, user="admin", workers=("w2",))
    await plan(world, 60, HOUR)
    await plan(world, HOUR, 2 * HOUR, user="admin", workers=("w1",))
    with pytest.raises(ConflictError) as refused:
        await plan(world, HOUR - 60, HOUR, user="admin")
    assert refused.value.code == "windows_overlap"
    assert f"{first.start:%Y-%m-%d %H:%M}" in refused.value.detail


async def test_members_see_windows_without_the_names_of_others(world: World) -> None:
    neighbour = await make_other_project(world)
    await plan(world, 60, HOUR, project="default", reason="the deadline")
    await plan(world, HOUR, 2 * HOUR, user="bea")
    assert [(one.project, one.user) for one in await windows(world, neighbour)] == [
        (None, None),
        (None, None),
    ]
    mine = await windows(world, world.admin)
    assert [(one.project, one.user) for one in mine] == [("default", None), (None, "bea")]
    with pytest.raises(ForbiddenError):
        async with world.database.write() as session:
            await pool_windows.cancel(session, neighbour, "default", mine[0].id)


NOON = datetime.fromisoformat("2026-03-04T12:00:00Z")


def window(start: int, end: int, **values: Any) -> PlannedWindow:
    return PlannedWindow(
        id=f"win_{start}",
        pool="lab",
        is_maintenance=not {"project_id", "user_id"} & set(values),
        start=NOON + timedelta(hours=start),
        end=NOON + timedelta(hours=end),
        **values,
    )


def test_a_worker_is_free_until_the_first_window_that_is_not_for_the_job() -> None:
    reservation = window(1, 2, project_id="p")
    personal = window(2, 3, user_id="u")
    maintenance = window(4, 5, workers=frozenset({"w"}))
    free = find_free_time("w", [reservation, personal, maintenance])
    assert free.free_until == reservation.start
    assert free.free_until_by_project == {"p": personal.start}
    assert free.free_until_by_user == {"u": reservation.start}
    other = find_free_time("v", [reservation, maintenance])
    assert other.free_until_by_project == {"p": None}
    assert find_free_time("v", [maintenance]).free_until is None
    assert find_blocking([reservation, personal], "p", "x") == personal
    assert find_blocking([reservation], "p", "x") is None


def test_a_window_is_described_by_kind_workers_and_time() -> None:
    assert describe(window(1, 2, reason="new drivers.")) == (
        "Maintenance of the pool lab from 2026-03-04 13:00 to 2026-03-04 14:00 UTC (new drivers)"
    )
    two = window(1, 2, project_id="p", workers=frozenset({"v", "w"}))
    assert describe(two) == (
        "A reservation for others of 2 workers of the pool lab from 2026-03-04 13:00 to "
        "2026-03-04 14:00 UTC"
    )
