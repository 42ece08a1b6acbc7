"""Export jobs with explicit formats, JSON columns read as views, and the pool of later jobs."""

import json
from typing import Any

import pytest

from app.domain.errors import ConflictError, InvalidError
from app.services.workers import workers
from palestra.contract.names import Schedule
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import Failure
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_catalogue, make_definition

EVALUATE = {
    "snapshot": "newest",
    "episodes": 7,
    "seed": 3,
    "formats": ["weights", "onnx"],
    "throttle_seconds": 0,
    "delay_seconds": 0,
    "only_once": True,
}
RESOURCES = {
    "gpus": 0,
    "cpu_threads": 2,
    "memory_mib": 512,
    "compile": "eager",
    "pack": "auto",
    "evaluation": "process",
}
LIMITS = {"wall_seconds": 60, "stall_seconds": 90, "grace_seconds": 30, "max_attempts": 3}
GPU = {"index": 0, "name": "H200", "uuid": "GPU-1", "memory_mib": 143_000}


def make_catalogue_with_onnx(**changes: Any) -> dict[str, Any]:
    return {**make_catalogue(), "export_formats": ["weights", "program", "onnx"], **changes}


async def make_trained_run(live_run: AttemptWithStore) -> str:
    """Returns a run that has a verified snapshot and whose training ended."""
    await live_run.write_snapshot(100)
    await live_run.world.release(
        live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq
    )
    return live_run.run_id


async def test_an_export_with_formats_is_queued_listed_and_claimed(
    world: World, live_run: AttemptWithStore
) -> None:
    worker = await world.register(slots=12, catalogue=make_catalogue_with_onnx())
    run_id = await make_trained_run(live_run)
    job = await world.add_job(run_id, Schedule.EXPORT, evaluate={"formats": ["weights", "onnx"]})
    assert job.evaluate is not None
    assert job.evaluate.formats == ("weights", "onnx")
    assert await world.job(job.id) in await world.list_jobs()
    order = (await world.claim(job.id, worker.worker_id)).work_order
    assert order.runs[0].formats == ("weights", "onnx")


@pytest.mark.both_databases(
    "Documents are text on SQLite and a type of their own on PostgreSQL.",
    of=("app.db.models.base",),
)
async def test_every_document_in_a_json_column_reads_back_unchanged(
    world: World, live_run: AttemptWithStore
) -> None:
    """Covers every strict document that a view reads from a JSON column."""
    worker = await world.register(catalogue=make_catalogue_with_onnx(), slots=12, gpus=[GPU])
    run_id = await make_trained_run(live_run)
    job = await world.add_job(
        run_id, Schedule.EXPORT, evaluate=EVALUATE, resources=RESOURCES, limits=LIMITS
    )
    claimed = await world.start(job.id, worker.worker_id)
    failure = {"message": "no", "exception": "OSError", "traceback": "at home"}
    await world.release(
        claimed.work_order.attempt_id,
        Outcome.FAILED,
        Cause.USER_EXCEPTION,
        failure=Failure.model_validate_json(json.dumps(failure)),
    )
    shown = (await world.job(job.id)).model_dump(mode="json")
    assert [shown[name] for name in ("evaluate", "resources", "limits", "failure")] == [
        EVALUATE,
        RESOURCES,
        LIMITS,
        failure,
    ]
    attempts = [one.model_dump(mode="json") for one in (await world.run(run_id)).attempts]
    assert failure in [one["failure"] for one in attempts]
    async with world.database.read() as session:
        (row,) = (await workers.list_workers(session, world.admin)).items
    assert row.model_dump(mode="json")["gpus"] == [GPU]


async def test_a_format_that_no_worker_writes_is_refused_at_submission(
    world: World, live_run: AttemptWithStore
) -> None:
    run_id = await make_trained_run(live_run)
    with pytest.raises(InvalidError, match="No worker of the pool default exports onnx") as refused:
        await world.add_job(run_id, Schedule.EXPORT, evaluate={"formats": ["onnx"]})
    assert refused.value.pointer == "/evaluate/formats"
    with pytest.raises(InvalidError, match="pip install onnx onnxscript") as refused:
        await world.submit(make_definition(export={"formats": ["weights", "onnx"]}))
    assert refused.value.pointer == "/definition/export/formats"


async def test_an_export_is_claimed_by_a_worker_that_writes_its_format(
    world: World, live_run: AttemptWithStore
) -> None:
    run_id = await make_trained_run(live_run)
    able = await world.register(name="w2", catalogue=make_catalogue_with_onnx())
    job = await world.add_job(run_id, Schedule.EXPORT, evaluate={"formats": ["onnx"]})
    with pytest.raises(ConflictError) as refused:
        await world.claim(job.id, live_run.worker_id, slot=1)
    assert refused.value.code == "does_not_fit"
    await world.claim(job.id, able.worker_id)


@pytest.mark.parametrize("schedule", [Schedule.EVALUATE, Schedule.TEST, Schedule.EXPORT])
async def test_later_jobs_of_a_run_use_the_pool_of_its_training(
    world: World, live_run: AttemptWithStore, schedule: Schedule
) -> None:
    run_id = await make_trained_run(live_run)
    worker = await world.register(name="gym-1", pool="gym")
    job = await world.add_job(run_id, Schedule.TRAIN, pool="gym")
    training = await world.start(job.id, worker.worker_id)
    await world.release(training.work_order.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    assert (await world.add_job(run_id, schedule)).pool == "gym"
    assert (await world.add_job(run_id, schedule, pool="default")).pool == "default"
