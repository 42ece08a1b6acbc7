"""What runs show of an attempt that does not train, and how later attempts update."""

from typing import Any

import pytest
from sqlalchemy import select

from app.db.engine import Database
from app.db.models import EventRow
from palestra.contract.states import Cause, Outcome
from tests.support.server_fixture import World


async def list_phases(database: Database, run_id: str) -> list[Any]:
    """Returns the phases in those events of a run that have one."""
    query = select(EventRow.data).where(EventRow.run_id == run_id, EventRow.type == "run")
    async with database.read() as session:
        events = await session.scalars(query.order_by(EventRow.id))
        return [data["phase"] for data in events if "phase" in data]


async def test_a_run_shows_what_its_attempt_does_before_it_trains(
    world: World, worker: str, database: Database
) -> None:
    job = await world.submit_one_job()
    (run_id,) = job.run_ids
    assert (await world.run(run_id)).phase is None
    attempt = (await world.claim(job.id, worker)).work_order.attempt_id
    assert (await world.run(run_id)).phase == "starting"
    phases = []
    for phase in ("starting", "compiling", "compiling", None, "compiling", None):
        await world.renew(attempt, phase=phase)
        phases.append((await world.run(run_id)).phase)
    assert phases == ["starting", "compiling", "compiling", None, "compiling", None]
    await world.renew(attempt, phase="compiling")
    await world.send_heartbeat(worker, dead=[attempt])
    assert (await world.run(run_id)).phase is None
    in_events = await list_phases(database, run_id)
    assert in_events == ["starting", "compiling", None, "compiling", None, "compiling", None, None]


async def test_a_worker_that_states_no_phase_shows_a_running_training(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job()
    await world.start(job.id, worker)
    assert (await world.run(job.run_ids[0])).phase is None


async def test_a_test_of_a_definition_shows_no_phase(
    world: World, worker: str, database: Database
) -> None:
    job = await world.submit_one_job(schedule="test")
    await world.start(job.id, worker)
    assert (await world.run(job.run_ids[0])).phase is None
    assert set(await list_phases(database, job.run_ids[0])) == {None}


@pytest.mark.parametrize("reported_at_end", [False, True])
@pytest.mark.parametrize("mode", ["eager", "compiled"])
async def test_every_attempt_of_a_run_updates_as_the_first_one_decided(
    world: World, worker: str, mode: str, reported_at_end: bool
) -> None:
    job = await world.submit_one_job()
    first = (await world.start(job.id, worker)).work_order
    assert first.resources.compile == "auto"
    if reported_at_end:
        provenance = {"compile": mode}
        await world.release(first.attempt_id, Outcome.DRAINED, Cause.DRAIN, provenance=provenance)
    else:
        await world.renew(first.attempt_id, compile=mode)
        # Later renewals may come from a supervisor that has read no progress yet.
        await world.renew(first.attempt_id)
        await world.send_heartbeat(worker, dead=[first.attempt_id])
    second = (await world.claim(job.id, worker, attempt=2)).work_order
    assert second.resources.compile == mode
    assert (await world.claim(job.id, worker, attempt=2)).work_order == second, "a repeated claim"
    await world.release(second.attempt_id, Outcome.FAILED, Cause.USER_EXCEPTION)
    run = await world.run(job.run_ids[0])
    assert [attempt.compile for attempt in run.attempts] == [mode, None]
    retried = await world.retry(job.run_ids[0])
    third = (await world.claim(retried.id, worker)).work_order
    assert third.resources.compile == mode, "the job of a retry"
    assert (await world.job(retried.id)).resources.compile == "auto"


async def test_what_a_person_chose_is_not_replaced_by_an_earlier_decision(
    world: World, worker: str
) -> None:
    job = await world.submit_one_job(resources={"compile": "eager"})
    first = (await world.start(job.id, worker)).work_order
    await world.renew(first.attempt_id, compile="compiled")
    await world.send_heartbeat(worker, dead=[first.attempt_id])
    assert (await world.claim(job.id, worker, attempt=2)).work_order.resources.compile == "eager"


async def test_after_cuda_graphs_auto_compiles_without_them(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    first = (await world.start(job.id, worker)).work_order
    await world.renew(first.attempt_id, compile="cudagraph")
    await world.send_heartbeat(worker, dead=[first.attempt_id])
    second = (await world.claim(job.id, worker, attempt=2)).work_order
    assert second.resources.compile == "compiled"


async def test_a_word_that_is_no_mode_in_a_report_is_left_out(world: World, worker: str) -> None:
    job = await world.submit_one_job()
    first = (await world.start(job.id, worker)).work_order
    await world.release(
        first.attempt_id, Outcome.DRAINED, Cause.DRAIN, provenance={"compile": ["quickly"]}
    )
    run = await world.run(job.run_ids[0])
    assert run.attempts[0].compile is None
    assert (await world.claim(job.id, worker, attempt=2)).work_order.resources.compile == "auto"
