"""Builds work orders: the documents from which a worker executes an attempt."""

import hashlib
from functools import lru_cache
from typing import Any, Final

from pydantic import TypeAdapter

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.repositories import attempts as rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.services.snapshots import snapshots
from app.services.views.experiments import read_definition
from palestra.contract.code import AnyCode, Code
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import EvaluateOptions, Limits, Resources
from palestra.contract.names import Schedule
from palestra.contract.upgrade import load_definition
from palestra.contract.work_order import (
    OLDEST_WORK_ORDER,
    WORK_ORDER_VERSION,
    Follow,
    RunOrder,
    SnapshotRef,
    WorkOrder,
)

FIRST_FENCE: Final = 1
"""Fence of a run's first training attempt, before which the run has neither snapshots nor
evaluations."""
_MAX_KEPT: Final = 256
_OPTIONS: Final[TypeAdapter[tuple[AnyCode, Resources, Limits]]] = TypeAdapter(
    tuple[Code, Resources, Limits]
)


async def repeat_run_orders(session: Session, job: JobRow, attempt: AttemptRow) -> list[RunOrder]:
    carried = {row.run_id: row for row in (await rows.load_runs(session, [attempt.id]))[attempt.id]}
    links = await job_rows.list_runs_with_links(session, job.id)
    runs = [run for run, _ in links if run.id in carried]
    if not job.schedule.writes_training_state:
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
    """Returns the orders of an attempt's runs; raises the fence of each that it will train."""
    if job.schedule.writes_training_state:
        afresh = job.afresh and job.attempt == 0
        for run in runs:
            # The caller has locked the rows.
            experiment_rows.change_run(run, {"fence": run.fence + 1})
        return [
            _training_order(
                run, run.fence, None if afresh else await _find_newest_snapshot(session, run)
            )
            for run in runs
        ]
    if job.schedule.starts_runs:
        return [
            RunOrder(run_id=run.id, seed=run.seed, replicate=run.replicate, fence=run.fence)
            for run in runs
        ]
    options = EvaluateOptions.model_validate_json(encode_canonical_json(job.evaluate or {}))
    return [await _reading_order(session, job, run, options) for run in runs]


async def _reading_order(
    session: Session, job: JobRow, run: RunRow, options: EvaluateOptions
) -> RunOrder:
    follows = job.schedule.follows_training
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
        policy=options.policy,
        formats=options.formats or await _export_formats(session, job),
        follow=_follow(options) if follows else None,
    )


async def _find_newest_snapshot(session: Session, run: RunRow) -> SnapshotRef | None:
    """Returns the snapshot to resume from; an attempt that raised the first fence has none."""
    if run.fence == FIRST_FENCE:
        return None
    return await snapshots.find_newest_verified(session, run.id)


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
    session: Session,
    job: JobRow,
    experiment: ExperimentRow,
    attempt: AttemptRow,
    orders: list[RunOrder],
) -> WorkOrder:
    """Returns the work order of an attempt."""
    options = _read_options(
        encode_canonical_json([experiment.code, job.resources, job.limits]).decode()
    )
    return WorkOrder(
        version=WORK_ORDER_VERSION
        if job.work_order_version == WORK_ORDER_VERSION
        else OLDEST_WORK_ORDER,
        attempt_id=attempt.id,
        attempt_number=attempt.number,
        job_id=job.id,
        experiment_id=job.experiment_id,
        schedule=job.schedule,
        definition=_read_definition(experiment.definition),
        code=options[0],
        resources=await _keep_compile_mode(session, job, options[1], orders),
        limits=options[2],
        allow_code_change=job.allow_code_change,
        runs=tuple(orders),
    )


async def _keep_compile_mode(
    session: Session, job: JobRow, resources: Resources, orders: list[RunOrder]
) -> Resources:
    """Returns the resources, with the earlier decision of the runs in place of `compile: auto`.

    Compiled and eager updates differ by roundings, so an attempt goes on as the one before it.
    """
    trained = [order.run_id for order in orders if order.fence > FIRST_FENCE]
    if resources.compile != "auto" or not job.schedule.writes_training_state:
        return resources
    decided = await rows.find_compile_mode(session, trained) if trained else None
    # The numbers of a CUDA graph are those of its kernels, and `auto` never takes one.
    mode = "compiled" if decided == "cudagraph" else decided
    return resources if mode is None else resources.model_copy(update={"compile": mode})


# Frozen documents, of which many jobs have the same ones.
_read_definition: Final = lru_cache(_MAX_KEPT)(load_definition)


@lru_cache(_MAX_KEPT)
def _read_options(text: str) -> tuple[AnyCode, Resources, Limits]:
    return _OPTIONS.validate_json(text)


async def experiment_of(session: Session, job: JobRow) -> ExperimentRow:
    experiment = await experiment_rows.find(session, job.project_id, job.experiment_id)
    assert experiment is not None
    return experiment
