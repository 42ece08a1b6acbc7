"""Pools: the projects that they admit, their one queue, their pause, and what a caller sees."""

from collections.abc import Sequence

import pytest

from app.db.models import MembershipRow, ProjectRow, UserRow
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services.jobs import dispatch_plan, jobs
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.workers import pools, workers
from palestra.contract.names import Schedule, new_id
from palestra.contract.permissions import Role
from palestra.contract.pools import (
    PoolAdmission,
    PoolChange,
    PoolRequest,
    PoolView,
    SlotView,
    WorkerView,
)
from palestra.contract.resources import CancelledJobView, JobView
from palestra.contract.states import JobState
from tests.support.server_fixture import ALL, World, advance_clock, make_principal

both_databases = pytest.mark.both_databases(
    "A pool is inserted once and locked by statements of each database.",
    of=("app.db.repositories.pools",),
)


async def make_other_project(
    world: World, name: str = "other", *, pool: str | None = "default"
) -> Principal:
    """Creates a project with a user in it, and admits it to a pool; returns the user."""
    project = ProjectRow(id=new_id("prj"), slug=name, name=name)
    user = UserRow(id=new_id("usr"), name=f"user-of-{name}")
    async with world.database.write() as session:
        session.add_all([project, user])
        await session.flush()
        member = {"project_id": project.id, "user_id": user.id, "role": Role.MEMBER.value}
        session.add(MembershipRow(**member))
    if pool is not None:
        await world.make_pool(pool, project_id=project.id)
    return make_principal(project, user, ALL, Role.MEMBER)


async def submit_definition(world: World, by: Principal, **options: object) -> JobView:
    """Submits the small definition as a user; returns the user's newest job."""
    await world.submit(by=by, **options)
    return (await list_jobs(world, by))[-1]


async def list_jobs(world: World, by: Principal) -> Sequence[JobView]:
    async with world.database.read() as session:
        request = jobs.PageRequest(limit=100, sort="created_at")
        return (await jobs.list_jobs(session, by, jobs.JobFilter(), request)).items


async def list_planned_jobs(world: World) -> list[str]:
    async with world.database.read() as session:
        return [
            one.job.id
            for pool in await dispatch_plan.decide(session, EquippedWorkers())
            for one in pool.made.decision.assignments
        ]


async def list_pools(world: World, by: Principal) -> dict[str, PoolView]:
    async with world.database.read() as session:
        return {pool.name: pool for pool in (await pools.list_pools(session, by)).items}


async def list_workers(world: World, by: Principal) -> dict[str, WorkerView]:
    async with world.database.read() as session:
        return {one.name: one for one in (await workers.list_workers(session, by)).items}


async def change_pool(world: World, pool: str, **values: object) -> PoolView:
    async with world.database.write() as session:
        return await pools.change(session, world.admin, pool, PoolChange(**values))


async def pause_pool(world: World, pool: str, reason: str) -> PoolView:
    async with world.database.write() as session:
        return await pools.pause(session, world.admin, pool, reason)


async def remove_project(world: World, pool: str, slug: str) -> None:
    async with world.database.write() as session:
        await pools.remove(session, world.admin, pool, slug)


async def test_the_default_pool_takes_jobs_before_any_worker(world: World) -> None:
    assert (await world.submit_one_job()).state is JobState.QUEUED


async def test_a_misspelt_pool_is_refused_at_submission(world: World) -> None:
    await world.make_pool("gpu-lab")
    with pytest.raises(
        InvalidError, match=r"did you mean gpu-lab.* pools are: default, gpu-lab"
    ) as refused:
        await world.submit(pool="gpulab")
    assert (refused.value.code, refused.value.pointer) == ("unknown_pool", "/options/pool")
    with pytest.raises(InvalidError, match=r"no pool zzz\. Its pools are: default, gpu-lab"):
        await world.submit(pool="zzz")
    assert await world.list_jobs() == []


async def test_a_pool_of_other_projects_is_refused_like_one_that_does_not_exist(
    world: World,
) -> None:
    await make_other_project(world, pool="secret-lab")
    answers = []
    for name in ("secret-lab", "secret-lap"):
        with pytest.raises(InvalidError) as refused:
            await world.submit(pool=name)
        answers.append((refused.value.code, refused.value.detail.replace(name, "NAME")))
    assert answers[0] == answers[1]
    assert "secret" not in answers[1][1]


async def test_a_project_that_no_pool_admits_gets_an_error_that_says_so(world: World) -> None:
    lonely = await make_other_project(world, pool=None)
    with pytest.raises(InvalidError, match="admitted to no pool") as refused:
        await world.submit(by=lonely)
    assert refused.value.code == "unknown_pool"


async def test_a_misspelt_pool_is_refused_for_a_job_on_a_run(world: World) -> None:
    job = await world.submit_one_job()
    with pytest.raises(InvalidError) as refused:
        await world.add_job(job.run_ids[0], Schedule.TEST, pool="defualt")
    assert (refused.value.code, refused.value.pointer) == ("unknown_pool", "/pool")
    assert "did you mean default?" in refused.value.detail


async def test_a_pool_whose_workers_are_all_offline_exists(world: World) -> None:
    await world.register(pool="gpu-lab")
    advance_clock(86_400)
    assert (await world.submit_one_job(pool="gpu-lab")).state is JobState.QUEUED


async def test_jobs_of_all_admitted_projects_share_one_queue_and_its_slots(world: World) -> None:
    neighbour = await make_other_project(world)
    await world.register(slots=2)
    mine = [(await world.submit_one_job(seeds=[seed])).id for seed in (1, 2)]
    theirs = await submit_definition(world, neighbour, seeds=[3])
    # Each user's first job comes before anybody's second one.
    assert await list_planned_jobs(world) == [mine[0], theirs.id]
    places = {job.id: job.position for job in await world.list_jobs()}
    assert (places[mine[0]], places[mine[1]]) == (1, 3)
    assert (await list_jobs(world, neighbour))[0].position == 2


async def test_a_worker_executes_jobs_of_all_admitted_projects(world: World) -> None:
    neighbour = await make_other_project(world)
    worker = await world.register(slots=2)
    theirs = await submit_definition(world, neighbour)
    claimed = await world.start(theirs.id, worker.worker_id)
    assert claimed.work_order.job_id == theirs.id
    assert (await list_jobs(world, neighbour))[0].state is JobState.RUNNING


async def test_a_job_of_a_project_that_was_removed_waits_and_says_so(world: World) -> None:
    neighbour = await make_other_project(world)
    worker = await world.register()
    theirs = await submit_definition(world, neighbour)
    mine = await world.submit_one_job()
    await remove_project(world, "default", "other")
    assert await list_planned_jobs(world) == [mine.id]
    with pytest.raises(ConflictError) as refused:
        await world.claim(theirs.id, worker.worker_id)
    assert refused.value.code == "project_not_admitted"
    (waits,) = await list_jobs(world, neighbour)
    assert waits.waiting is not None
    assert waits.waiting.startswith("The pool default does not admit this project any more.")
    assert waits.position is None
    await world.make_pool("default", project_id=next(iter(neighbour.project_ids)))
    advance_clock(31)
    await world.send_heartbeat(worker.worker_id)
    assert set(await list_planned_jobs(world)) == {mine.id, theirs.id}


async def test_a_worker_cannot_ask_for_jobs_outside_its_pool(world: World) -> None:
    stranger = await make_other_project(world, pool="lab")
    worker = await world.register()
    hidden = await submit_definition(world, stranger, pool="lab")
    with pytest.raises(NotFoundError):
        await world.claim(hidden.id, worker.worker_id)
    await world.make_pool("lab")
    own = await world.submit_one_job(pool="lab")
    with pytest.raises(ConflictError) as refused:
        await world.claim(own.id, worker.worker_id)
    assert refused.value.code == "does_not_fit"


async def test_a_paused_pool_starts_nothing_and_running_jobs_go_on(world: World) -> None:
    worker = await world.register(slots=2)
    running = await world.submit_one_job(seeds=[1])
    live = await world.start(running.id, worker.worker_id)
    waits = await world.submit_one_job(seeds=[2])
    paused = await pause_pool(world, "default", "the cooling is being repaired")
    assert paused.paused_at is not None
    assert await list_planned_jobs(world) == []
    with pytest.raises(ConflictError) as refused:
        await world.claim(waits.id, worker.worker_id, slot=1)
    assert refused.value.code == "pool_paused"
    assert (await world.job(waits.id)).waiting == (
        "The pool default is paused, and starts no job until it is resumed: the cooling is being "
        "repaired."
    )
    assert (await world.renew(live.work_order.attempt_id)).order == "continue"
    again = await pause_pool(world, "default", "still")
    assert (again.paused_at, again.pause_reason) == (paused.paused_at, "still")
    async with world.database.write() as session:
        assert (await pools.resume(session, world.admin, "default")).paused_at is None
    advance_clock(31)
    await world.send_heartbeat(worker.worker_id)
    assert await list_planned_jobs(world) == [waits.id]


async def test_a_job_gets_the_wall_time_of_its_pool_and_no_more_than_its_maximum(
    world: World,
) -> None:
    assert (await world.submit_one_job(seeds=[1])).limits.wall_seconds is None
    await change_pool(world, "default", max_wall_seconds=7_200)
    assert (await world.submit_one_job(seeds=[2])).limits.wall_seconds == 7_200
    await change_pool(world, "default", default_wall_seconds=3_600)
    job = await world.submit_one_job(seeds=[3])
    assert job.limits.wall_seconds == 3_600
    assert (
        await world.submit_one_job(seeds=[4], limits={"wall_seconds": 7_200})
    ).limits.wall_seconds == (7_200)
    with pytest.raises(InvalidError, match="at most 7200 s, not 7201") as refused:
        await world.submit(seeds=[5], limits={"wall_seconds": 7_201})
    assert (refused.value.code, refused.value.pointer) == (
        "wall_time_too_long",
        "/options/limits/wall_seconds",
    )
    with pytest.raises(InvalidError) as refused:
        await world.add_job(job.run_ids[0], Schedule.TEST, limits={"wall_seconds": 9_000})
    assert refused.value.pointer == "/limits/wall_seconds"
    assert (await world.add_job(job.run_ids[0], Schedule.TEST)).limits.wall_seconds == 3_600


async def test_a_repeated_submission_without_a_wall_time_is_no_other_option(world: World) -> None:
    await change_pool(world, "default", default_wall_seconds=3_600)
    await world.submit()
    again, _ = await world.submit()
    assert [warning.code for warning in again.warnings] == []


async def test_a_default_wall_time_above_the_maximum_is_refused(world: World) -> None:
    await change_pool(world, "default", max_wall_seconds=100)
    for values in (
        {"default_wall_seconds": 101},
        {"default_wall_seconds": 5, "max_wall_seconds": 4},
    ):
        with pytest.raises(InvalidError) as refused:
            await change_pool(world, "default", **values)
        assert refused.value.code == "wall_times_crossed"
    request = PoolRequest(name="x", default_wall_seconds=2, max_wall_seconds=1)
    with pytest.raises(InvalidError):
        async with world.database.write() as session:
            await pools.create(session, world.admin, request)
    assert set(await list_pools(world, world.admin)) == {"default"}


async def test_a_caller_sees_the_pools_of_its_projects_with_its_own_jobs(world: World) -> None:
    neighbour = await make_other_project(world)
    await make_other_project(world, "far", pool="lab")
    worker = await world.register(slots=3)
    theirs = await submit_definition(world, neighbour, seeds=[1])
    await world.start(theirs.id, worker.worker_id)
    await world.submit_one_job(seeds=[2])
    (pool,) = (await list_pools(world, neighbour)).values()
    assert (pool.name, pool.queued, pool.running) == ("default", 0, 1)
    assert (pool.slots, pool.free_slots) == (3, 2)
    assert [one.project for one in pool.projects] == ["other"]
    assert (pool.all_queued, pool.all_running) == (None, None)
    every = await list_pools(world, world.admin)
    assert set(every) == {"default", "lab"}
    assert (every["default"].queued, every["default"].running) == (1, 0)
    assert (every["default"].all_queued, every["default"].all_running) == (1, 1)
    assert [one.project for one in every["default"].projects] == ["default", "other"]
    for hidden in ("lab", "missing"):
        async with world.database.read() as session:
            with pytest.raises(NotFoundError):
                await pools.get(session, neighbour, hidden)


async def test_of_a_foreign_job_a_caller_sees_that_the_slot_is_busy(world: World) -> None:
    neighbour = await make_other_project(world)
    worker = await world.register(slots=3)
    mine = await world.submit_one_job(seeds=[1])
    theirs = await submit_definition(world, neighbour, seeds=[2])
    own = await world.start(mine.id, worker.worker_id)
    await world.start(theirs.id, worker.worker_id, slot=1)
    slots = (await list_workers(world, world.other))["w1"].slots
    assert slots[0] == SlotView(
        index=0,
        busy=True,
        attempt_id=own.work_order.attempt_id,
        job_id=mine.id,
        run_ids=mine.run_ids,
        user="admin",
        project="default",
    )
    hidden = SlotView(index=1, busy=True, attempt_id=None, job_id=None, run_ids=[])
    assert slots[1] == hidden
    assert slots[2] == SlotView(index=2, attempt_id=None, job_id=None, run_ids=[])
    await change_pool(world, "default", shows_names=True)
    slots = (await list_workers(world, world.other))["w1"].slots
    named = {"user": "user-of-other", "project": "other"}
    assert slots[1] == hidden.model_copy(update=named)
    # An administrator of the server needs the job's ID to cancel it.
    slots = (await list_workers(world, world.admin))["w1"].slots
    assert slots[1] == hidden.model_copy(update={**named, "job_id": theirs.id})


async def test_workers_of_pools_that_admit_none_of_ones_projects_do_not_exist(world: World) -> None:
    stranger = await make_other_project(world, pool="lab")
    worker = await world.register()
    assert set(await list_workers(world, stranger)) == set()
    assert set(await list_workers(world, world.other)) == {"w1"}
    async with world.database.read() as session:
        with pytest.raises(NotFoundError):
            await workers.get(session, stranger, worker.worker_id)


@both_databases
async def test_a_pool_is_deleted_once_nothing_uses_it(world: World) -> None:
    await world.register(name="w2", pool="lab")
    job = await world.submit_one_job(pool="lab")
    with pytest.raises(ConflictError) as refused:
        await _delete(world, "lab")
    assert (refused.value.code, refused.value.extra) == ("pool_in_use", {"workers": 1, "jobs": 1})
    await world.cancel(job.id)
    with pytest.raises(ConflictError):
        await _delete(world, "lab")
    advance_clock(86_400)
    await _delete(world, "lab")
    assert set(await list_pools(world, world.admin)) == {"default"}
    assert set(await list_workers(world, world.other)) == set()
    assert (await world.job(job.id)).pool == "lab"
    with pytest.raises(InvalidError):
        await world.submit_one_job(pool="lab", seeds=[9])


async def _delete(world: World, pool: str) -> None:
    async with world.database.write() as session:
        await pools.delete(session, world.admin, pool)


@both_databases
async def test_names_of_pools_are_unique_and_projects_must_exist(world: World) -> None:
    request = PoolRequest(name="lab", projects=("default",))
    async with world.database.write() as session:
        made = await pools.create(session, world.admin, request)
    assert [one.project for one in made.projects] == ["default"]
    with pytest.raises(ConflictError) as taken:
        async with world.database.write() as session:
            await pools.create(session, world.admin, request)
    assert taken.value.code == "pool_name_taken"
    with pytest.raises(InvalidError) as unknown:
        async with world.database.write() as session:
            await pools.create(
                session, world.admin, PoolRequest(name="new", projects=("default", "nobody"))
            )
    assert (unknown.value.code, unknown.value.pointer) == ("no_such_project", "/projects/1")
    assert set(await list_pools(world, world.admin)) == {"default", "lab"}


async def test_a_share_is_stored_with_the_admission(world: World) -> None:
    await make_other_project(world)
    async with world.database.write() as session:
        made = await pools.admit(session, world.admin, "default", "other", PoolAdmission(share=2.5))
    assert {one.project: one.share for one in made.projects} == {"default": 1.0, "other": 2.5}


async def test_members_may_not_change_pools(world: World) -> None:
    for act in (
        lambda session: pools.pause(session, world.other, "default", "x"),
        lambda session: pools.create(session, world.other, PoolRequest(name="x")),
        lambda session: pools.delete(session, world.other, "default"),
        lambda session: pools.remove(session, world.other, "default", "default"),
    ):
        async with world.database.write() as session:
            with pytest.raises(ForbiddenError):
                await act(session)


async def test_an_administrator_cancels_a_foreign_job_and_reads_nothing_of_it(
    world: World,
) -> None:
    neighbour = await make_other_project(world)
    theirs = await submit_definition(world, neighbour)
    async with world.database.write() as session:
        answer = await jobs.cancel(session, world.admin, theirs.id, "the node goes away")
    assert answer == CancelledJobView(id=theirs.id, state=JobState.CANCELLED)
    assert (await list_jobs(world, neighbour))[0].state is JobState.CANCELLED
    async with world.database.write() as session:
        with pytest.raises(NotFoundError):
            await jobs.cancel(session, world.other, theirs.id)
        with pytest.raises(NotFoundError):
            await jobs.cancel(session, world.admin, new_id("job"))
