"""Continuous evaluations of a run: starting one, sending its evaluations and ending it."""

from dataclasses import replace
from typing import Any

from palestra.contract.names import Schedule
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.artifact_store import AttemptWithStore

SLOT = 5


async def start_continuous_eval(
    live_run: AttemptWithStore, schedule: Schedule = Schedule.CONTINUOUS_EVAL, **options: Any
) -> AttemptWithStore:
    """Starts a continuous evaluation concurrently with the training."""
    job = await live_run.world.add_job(live_run.run_id, schedule, evaluate=options)
    order = (await live_run.world.start(job.id, live_run.worker_id, slot=SLOT)).work_order
    return replace(live_run, job_id=job.id, attempt_id=order.attempt_id, seq=0)


async def send_evaluation(
    one: AttemptWithStore, snapshot_id: str, mean: float = 1.0, source: str = "evaluation"
) -> None:
    at = (await one.list_snapshots())[snapshot_id].env_step
    await one.send(
        {**records.make_evaluation(one.run_id, at, mean, snapshot_id=snapshot_id), "source": source}
    )


async def end_attempt(
    one: AttemptWithStore, outcome: Outcome = Outcome.SUCCEEDED, cause: Cause = Cause.BUDGET
) -> None:
    await one.world.release(one.attempt_id, outcome, cause, last_seq=one.seq)
