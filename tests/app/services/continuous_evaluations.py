"""Continuous evaluations of a run: starting one, sending its evaluations and ending it."""

from dataclasses import replace
from typing import Any

from palestra.contract.names import Schedule
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.artifact_store import AttemptWithStore

SLOT = 5


async def start_continuous_eval(
    storing: AttemptWithStore, schedule: Schedule = Schedule.CONTINUOUS_EVAL, **options: Any
) -> AttemptWithStore:
    """Starts a continuous evaluation concurrently with the training."""
    job = await storing.world.add_job(storing.run_id, schedule, evaluate=options)
    order = (await storing.world.start(job.id, storing.worker_id, slot=SLOT)).work_order
    return replace(storing, job_id=job.id, attempt_id=order.attempt_id, seq=0)


async def evaluate(
    one: AttemptWithStore, snapshot_id: str, mean: float = 1.0, source: str = "evaluation"
) -> None:
    at = (await one.snapshots())[snapshot_id].env_step
    await one.send(
        {**records.evaluation(one.run_id, at, mean, snapshot_id=snapshot_id), "source": source}
    )


async def end(
    one: AttemptWithStore, outcome: Outcome = Outcome.SUCCEEDED, cause: Cause = Cause.BUDGET
) -> None:
    await one.world.release(one.attempt_id, outcome, cause, last_seq=one.seq)
