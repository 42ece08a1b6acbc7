"""Limits on the jobs of an experiment, and quotas of projects and persons in a pool."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from app.daemons.dispatcher import Dispatcher
from app.db.engine import Database
from app.domain.errors import ConflictError, DomainError, ForbiddenError, NotFoundError
from app.domain.queue.quotas import DEFAULT_QUEUED
from app.services.experiments import experiments
from app.services.queue import quotas as queue_quotas
from app.services.workers import quotas
from palestra.contract.job_changes import ExperimentChange
from palestra.contract.names import Schedule
from palestra.contract.queue import WaitReason
from palestra.contract.quotas import ProjectQuotasView, QuotaChange
from palestra.contract.resources import JobView
from palestra.contract.states import JobState
from tests.app.services.test_dispatcher import RecordingQueue, dispatcher, queue
from tests.support.queue_steps import as_member, explain, run_for
from tests.support.server_fixture import World, advance_clock

__all__ = ["dispatcher", "queue"]

pytestmark = pytest.mark.asyncio

both_databases = pytest.mark.both_databases(
    "Quotas are locked on PostgreSQL, where transactions write concurrently.",
    of=("app.db.repositories.quotas",),
)


async def limit(world: World, experiment_id: str, most: int | None, by: Any = None) -> None:
    async with world.database.write() as session:
        change = ExperimentChange(max_running=most)
        found = await experiments.change(session, by or world.admin, experiment_id, change)
    assert found.max_running == most


async def set_quota(world: World, by: Any = None, **members: Any) -> ProjectQuotasView:
    body = QuotaChange.model_validate_json(json.dumps(members))
    async with world.database.write() as session:
        return await quotas.change(session, by or world.admin, "default", "default", body)


async def waiting(world: World) -> list[JobView]:
    return [job for job in await world.list_jobs(state=JobState.QUEUED) if job.worker_id is None]


async def test_at_most_so_many_jobs_of_an_experiment_run(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    worker = (await world.register(slots=4)).worker_id
    made, _ = await world.submit(seeds=list(range(5)), max_running=2)
    assert made.max_running == 2
    assert await dispatcher.tick() == 2
    for slot, job_id in enumerate(list(queue.jobs)):
        await world.start(job_id, worker, slot=slot)
    assert await dispatcher.tick() == 0
    held = (await world.list_jobs(state=JobState.QUEUED))[0]
    assert (await explain(world, held.id)).reason is WaitReason.EXPERIMENT_LIMIT
    assert held.waiting is not None
    assert held.waiting.startswith("As many jobs of its experiment run")
    await limit(world, made.id, 3)
    assert await dispatcher.tick() == 1
    await limit(world, made.id, None)
    assert await dispatcher.tick() == 1


async def test_a_limit_of_an_experiment_holds_over_pools(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    """Regression: each pool started as many in one tick."""
    await world.register(slots=4)
    await world.register(name="far", pool="far", slots=4)
    made, _ = await world.submit(seeds=[0, 1], max_running=3)
    await world.submit(seeds=[2, 3, 4], pool="far")
    other = {**made.definition.model_dump(mode="json"), "loop": {"env_steps": 77}}
    free, _ = await world.submit(other, seeds=[0], pool="far")
    assert await dispatcher.tick() == 4
    jobs = {job.id: job.experiment_id for job in await world.list_jobs()}
    started = [jobs[job_id] for job_id in queue.jobs]
    assert (started.count(made.id), started.count(free.id)) == (3, 1)
    assert await dispatcher.tick() == 0


async def test_a_held_experiment_hides_no_other_jobs(
    world: World, dispatcher: Dispatcher, queue: RecordingQueue
) -> None:
    await world.register(slots=3)
    await world.submit(seeds=list(range(40)), max_running=1, priority=5)
    document = {**(await world.submit())[0].definition.model_dump(mode="json"), "notes": "other"}
    document["loop"] = {"env_steps": 77}
    other, _ = await world.submit(document, seeds=[0])
    await dispatcher.tick()
    jobs = {job.id: job.experiment_id for job in await world.list_jobs()}
    assert other.id in {jobs[job_id] for job_id in queue.jobs}


async def test_a_limit_of_an_experiment_is_no_part_of_its_identity(world: World) -> None:
    first, _ = await world.submit(seeds=[0], max_running=2)
    again, is_new = await world.submit(seeds=[1])
    assert (again.id, is_new, again.max_running) == (first.id, False, 2)
    again, _ = await world.submit(seeds=[1], max_running=7)
    assert again.max_running == 7
    with pytest.raises(ForbiddenError) as refused:
        await limit(world, first.id, 1, as_member(world))
    assert refused.value.code == "not_yours"


async def test_a_submission_beyond_the_quota_of_queued_jobs_is_refused(world: World) -> None:
    await set_quota(world, each_person={"queued": 3})
    await world.submit(seeds=[0, 1])
    with pytest.raises(ConflictError) as refused:
        await world.submit(seeds=[2, 3])
    error = refused.value
    assert (error.code, error.pointer) == ("quota_exceeded", "/options/pool")
    assert error.extra == {"limit": 3, "queued": 2, "asked": 2}
    assert "Submit at most 1" in error.detail
    assert len(await world.list_jobs()) == 2
    await world.submit(seeds=[2, 3], by=world.other)
    await world.submit(seeds=[4])
    run_id = (await world.list_jobs())[0].run_ids[0]
    with pytest.raises(ConflictError) as refused:
        await world.add_job(run_id, Schedule.TEST)
    assert (refused.value.code, refused.value.pointer) == ("quota_exceeded", "/pool")
    await set_quota(world, persons={"admin": {"queued": 10}})
    await world.submit(seeds=[5])
    await set_quota(world, project={"queued": 6})
    with pytest.raises(ConflictError, match="your project's quota is 6"):
        await world.submit(seeds=[6], by=world.other)


@pytest.mark.parametrize("limits", [{}, {"running": 3}])
async def test_a_person_without_a_quota_of_queued_jobs_has_the_default(
    world: World, limits: dict[str, int]
) -> None:
    await set_quota(world, each_person=limits)
    await world.submit(seeds=[0, 1])

    async def check(number: int) -> None:
        async with world.database.write() as session:
            await queue_quotas.check_queued(
                session, world.project_id, world.admin.user_id, "default", number, "/pool"
            )

    await check(DEFAULT_QUEUED - 2)
    with pytest.raises(ConflictError, match="your quota is 10000") as refused:
        await check(DEFAULT_QUEUED - 1)
    assert refused.value.code == "quota_exceeded"
    await set_quota(world, each_person={"queued": DEFAULT_QUEUED + 1})
    await check(DEFAULT_QUEUED - 1)


@both_databases
async def test_submissions_at_once_do_not_exceed_the_quota(world: World) -> None:
    await set_quota(world, each_person={"queued": 3})

    async def submit(seed: int) -> bool:
        try:
            await world.submit(seeds=[seed])
        except ConflictError:
            return False
        return True

    assert sum(await asyncio.gather(*map(submit, range(8)))) == 3
    assert len(await world.list_jobs()) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"each_person": {"running": 1}}, WaitReason.PERSON_LIMIT),
        ({"persons": {"admin": {"running": 1}}}, WaitReason.PERSON_LIMIT),
        ({"project": {"running": 1}}, WaitReason.PROJECT_LIMIT),
    ],
)
async def test_running_jobs_beyond_the_quota_wait(
    world: World,
    dispatcher: Dispatcher,
    queue: RecordingQueue,
    change: dict[str, Any],
    reason: WaitReason,
) -> None:
    worker = (await world.register(slots=4)).worker_id
    await set_quota(world, **change)
    await world.submit(seeds=[0, 1, 2])
    assert await dispatcher.tick() == 1
    await world.start(queue.jobs[0], worker)
    assert await dispatcher.tick() == 0
    held = (await world.list_jobs(state=JobState.QUEUED))[0]
    assert (await explain(world, held.id)).reason is reason
    await set_quota(world, **json.loads(json.dumps(change).replace("1", "2")))
    assert await dispatcher.tick() == 1


@pytest.mark.parametrize("of", ["each_person", "project"])
async def test_used_device_hours_hold_until_they_are_a_week_old(
    world: World, dispatcher: Dispatcher, of: str
) -> None:
    worker = (await world.register(slots=1)).worker_id
    await set_quota(world, **{of: {"device_hours": 1}})
    await run_for(world, (await world.submit_one_job(seeds=[0])).id, worker, 3_500)
    await world.send_heartbeat(worker)
    job = await world.submit_one_job(seeds=[1])
    await run_for(world, job.id, worker, 200)
    held = await world.submit_one_job(seeds=[2])
    await world.send_heartbeat(worker)
    assert await dispatcher.tick() == 0
    assert (await explain(world, held.id)).reason is WaitReason.DEVICE_HOURS
    async with world.database.read() as session:
        shown = await quotas.show(session, world.admin, "default", "default")
    (person,) = (one for one in shown.persons if one.user == "admin")
    state = person if of == "each_person" else shown.of_project
    assert state.used.device_hours == pytest.approx(3_700 / 3_600, abs=0.01)
    assert (state.left.device_hours, state.left.running) == (0, None)
    advance_clock(7 * 86_400 - 300)
    await world.send_heartbeat(worker)
    assert await dispatcher.tick() == 1


async def test_the_time_of_live_attempts_counts_as_used(
    world: World, dispatcher: Dispatcher
) -> None:
    worker = (await world.register(slots=2)).worker_id
    await set_quota(world, each_person={"device_hours": 0.5})
    await world.start((await world.submit_one_job(seeds=[0])).id, worker)
    await world.submit_one_job(seeds=[1])
    advance_clock(1_900)
    await world.send_heartbeat(worker)
    assert await dispatcher.tick() == 0


@both_databases
async def test_members_read_the_quotas_and_administrators_set_them(
    world: World, database: Database
) -> None:
    found = await set_quota(
        world,
        project={"queued": 100, "device_hours": 12.5},
        each_person={"running": 4},
        persons={"bea": {"running": 1}},
    )
    assert found.of_project.limits.device_hours == 12.5
    assert {one.user: one.limits.running for one in found.persons} == {"admin": 4, "bea": 1}
    await world.submit(seeds=[0, 1])
    found = await set_quota(world, project={"device_hours": None}, persons={"bea": None})
    assert (found.of_project.limits.device_hours, found.of_project.left.queued) == (None, 98)
    assert {one.user: one.limits.running for one in found.persons} == {"admin": 4, "bea": 4}
    async with database.read() as session:
        shown = await quotas.show(session, world.other, "default", "default")
    assert shown.of_project == found.of_project
    with pytest.raises(ForbiddenError):
        await set_quota(world, by=world.other, project={"queued": 1})
    with pytest.raises(DomainError) as refused:
        await set_quota(world, persons={"nobody": {"queued": 1}})
    assert (refused.value.code, refused.value.pointer) == ("no_such_member", "/persons/nobody")
    async with database.read() as session:
        with pytest.raises(NotFoundError):
            await quotas.show(session, world.other, "elsewhere", "default")


async def test_each_person_sees_what_is_left_of_the_own_quotas(world: World) -> None:
    async with world.database.read() as session:
        assert (await quotas.list_own(session, world.admin)).items == []
    await world.make_pool("free")
    await set_quota(world, project={"queued": 10}, persons={"bea": {"running": 2}})
    await world.submit(seeds=[0, 1, 2])
    await world.submit(seeds=[3], by=world.other)
    async with world.database.read() as session:
        (own,) = (await quotas.list_own(session, world.admin)).items
        (hers,) = (await quotas.list_own(session, as_member(world))).items
    assert (own.pool, own.project) == ("default", "default")
    assert (own.of_project.limits.queued, own.of_project.left.queued) == (10, 6)
    assert own.of_person.limits.running is None
    assert own.of_person.used.queued == 3
    assert (hers.of_person.left.running, hers.of_person.used.queued) == (2, 1)
    assert hers.of_project == own.of_project
    stranger = replace(world.admin, memberships=())
    async with world.database.read() as session:
        assert (await quotas.list_own(session, stranger)).items == []
