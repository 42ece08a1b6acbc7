"""Builds work orders: the documents from which a worker executes an attempt."""

import hashlib
from typing import Any

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.repositories import attempts as rows
from app.db.repositories import experiments as experiment_rows
from app.services.snapshots import snapshots
from app.services.views.experiments import read_definition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import EvaluateOptions
from palestra.contract.names import Schedule
from palestra.contract.work_order import (
    Follow,
    RunOrder,
    SnapshotRef,
    WorkOrder,
)


async def repeat_run_orders(session: Session, job: JobRow, attempt: AttemptRow) -> list[RunOrder]:
    carried = {row.run_id: row for row in (await rows.load_runs(session, [attempt.id]))[attempt.id]}
    runs = [
        run for run in await experiment_rows.list_runs_for_job(session, job.id) if run.id in carried
    ]
    if not Schedule(job.schedule).writes_training_state:
        return await make_run_orders(session, job, runs)
    return [
        _training_order(run, carried[run.id].fence, await _resumed_from(session, carried[run.id]))
        for run in runs
    ]


async def _resumed_from(session: Session, carried: AttemptRunRow) -> SnapshotRef | None:
    return (
        None
        if carried.snapshot_id is None
        else await snapshots.resolve(session, carried.run_id, carried.snapshot_id)
    )


def _training_order(run: RunRow, fence: int, snapshot: SnapshotRef | None) -> RunOrder:
    return RunOrder(
        run_id=run.id, seed=run.seed, replicate=run.replicate, fence=fence, snapshot=snapshot
    )


async def make_run_orders(session: Session, job: JobRow, runs: list[RunRow]) -> list[RunOrder]:
    if Schedule(job.schedule).writes_training_state:
        fences = await rows.raise_fences(session, [run.id for run in runs])
        afresh = job.afresh and job.attempt == 0
        return [
            _training_order(
                run,
                fences[run.id],
                None if afresh else await snapshots.find_newest_verified(session, run.id),
            )
            for run in runs
        ]
    if Schedule(job.schedule).starts_runs:
        return [
            RunOrder(run_id=run.id, seed=run.seed, replicate=run.replicate, fence=run.fence)
            for run in runs
        ]
    options = EvaluateOptions.model_validate_json(encode_canonical_json(job.evaluate or {}))
    return [await _reading_order(session, job, run, options) for run in runs]


async def _reading_order(
    session: Session, job: JobRow, run: RunRow, options: EvaluateOptions
) -> RunOrder:
    follows = Schedule(job.schedule).follows_training
    snapshot = None if follows else await snapshots.resolve(session, run.id, options.snapshot)
    return RunOrder(
        run_id=run.id,
        seed=run.seed,
        replicate=run.replicate,
        fence=run.fence,
        snapshot=snapshot,
        episodes=options.episodes,
        evaluation_seed=options.seed
        if options.seed is not None
        else derive_fresh_seed(job.id, run.id),
        formats=options.formats or await _export_formats(session, job),
        follow=_follow(options) if follows else None,
    )


def _follow(options: EvaluateOptions) -> Follow:
    names = ("throttle_seconds", "delay_seconds", "only_once")
    return Follow(
        **{name: getattr(options, name) for name in names}, same_episodes=options.seed is not None
    )


def derive_fresh_seed(job_id: str, run_id: str) -> int:
    """Returns a seed for the episodes of an evaluation: 32 bits of a hash of job and run."""
    return int.from_bytes(hashlib.sha256(f"{job_id}/{run_id}".encode()).digest()[:4])


async def _export_formats(session: Session, job: JobRow) -> tuple[Any, ...]:
    if job.schedule != Schedule.EXPORT:
        return ()
    return read_definition(await experiment_of(session, job)).export.formats or ("weights",)


async def make_work_order(
    session: Session, job: JobRow, attempt: AttemptRow, orders: list[RunOrder]
) -> WorkOrder:
    experiment = await experiment_of(session, job)
    document = {
        "attempt_id": attempt.id,
        "attempt_number": attempt.number,
        "job_id": job.id,
        "experiment_id": job.experiment_id,
        "schedule": job.schedule,
        "definition": read_definition(experiment).model_dump(mode="json"),
        "code": experiment.code,
        "resources": job.resources,
        "limits": job.limits,
        "allow_code_change": job.allow_code_change,
        "runs": [order.model_dump(mode="json") for order in orders],
    }
    return WorkOrder.model_validate_json(encode_canonical_json(document))


async def experiment_of(session: Session, job: JobRow) -> ExperimentRow:
    experiment = await experiment_rows.find(session, job.project_id, job.experiment_id)
    assert experiment is not None
    return experiment
