"""A person's overview: running and failed runs, the next job, and the numbers of jobs."""

from app.domain.principal import Principal
from app.services import overview
from app.services.experiments import experiments
from palestra.contract.overview import OverviewView
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import Failure
from tests.support.server_fixture import World, advance_clock, make_definition


async def show(world: World, by: Principal | None = None) -> OverviewView:
    async with world.database.read() as session:
        return await overview.show(session, by or world.admin)


async def fail(world: World, job_id: str, worker: str) -> None:
    attempt = (await world.start(job_id, worker)).work_order.attempt_id
    failure = Failure(message="KeyError: 'pole'")
    await world.release(attempt, Outcome.FAILED, Cause.USER_EXCEPTION, failure=failure)


async def test_nothing_yet(world: World) -> None:
    found = await show(world)
    assert (found.running, found.failed, found.next_job, found.waiting) == ([], [], None, 0)
    assert [(one.project, one.waiting) for one in found.projects] == [("default", 0)]


async def test_own_runs_and_the_next_job(world: World) -> None:
    worker = (await world.register(slots=1)).worker_id
    running, failing, *_ = [await world.submit_one_job(seeds=[seed]) for seed in range(4)]
    await fail(world, failing.id, worker)
    await world.start(running.id, worker)
    await world.submit(seeds=[9], by=world.other)
    found = await show(world)
    assert [run.id for run in found.running] == running.run_ids
    assert [run.failure.message for run in found.failed if run.failure] == ["KeyError: 'pole'"]
    assert (found.running_total, found.failed_total, found.waiting) == (1, 1, 2)
    assert found.next_job is not None
    assert found.next_job.created_by == "admin"
    assert found.next_job.position == 2, "the other person has used less"
    theirs = await show(world, world.other)
    assert (theirs.running, theirs.failed, theirs.waiting) == ([], [], 1)
    (project,) = theirs.projects
    assert (project.running, project.waiting, project.paused) == (1, 3, 0)


async def test_old_retried_and_archived_failures_are_left_out(world: World) -> None:
    worker = (await world.register(slots=1)).worker_id
    kept = await world.submit_one_job(seeds=[0])
    retried = await world.submit_one_job(seeds=[1])
    await fail(world, kept.id, worker)
    await fail(world, retried.id, worker)
    await world.retry(retried.run_ids[0])
    hidden, _ = await world.submit(make_definition(loop={"env_steps": 11}))
    (job,) = await world.list_jobs(experiment_id=hidden.id)
    await fail(world, job.id, worker)
    async with world.database.write() as session:
        await experiments.archive(session, world.admin, hidden.id)
    assert [run.id for run in (await show(world)).failed] == kept.run_ids
    advance_clock(8 * 86_400)
    assert (await show(world)).failed == []


async def test_a_job_without_a_place_is_the_next_one_if_there_is_no_other(world: World) -> None:
    large = await world.submit_one_job(seeds=[1], resources={"gpus": 8})
    await world.register(slots=1)
    found = await show(world)
    assert found.next_job is not None
    assert (found.next_job.id, found.next_job.position) == (large.id, None)
