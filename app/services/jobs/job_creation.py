"""Creates jobs: trainings of a submission, and schedules on existing runs."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, islice
from typing import Any, Final, TypeVar

from app.db.engine import QUEUE, Session, announce
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import JobRow
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as rows
from app.db.repositories import queue_groups
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.domain.queue.packs import resolve_pack
from app.services import offers
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.jobs import dependencies, job_events, job_state, priority_classes
from app.services.jobs.dependencies import Dependencies
from app.services.jobs.job_state import TransitionDetails
from app.services.projects import storage_limits
from app.services.queue import quotas
from app.services.runs import run_events, runs
from app.services.snapshots import snapshots
from app.services.views.jobs import build_job_views
from palestra.contract.agents import PACKABLE_AGENTS
from palestra.contract.job_options import EvaluateOptions, JobOptions, JobRequest
from palestra.contract.names import Schedule, new_id
from palestra.contract.permissions import Permission
from palestra.contract.resources import JobView
from palestra.contract.states import JobState
from palestra.contract.work_order import choose_work_order_version

_Run = TypeVar("_Run")

_JOBS_PER_STEP: Final = 100
"""Number of jobs that are queued before other requests may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """Runs of an experiment that have no training job yet, and how they are trained."""

    runs: Sequence[RunRow]
    pack_sizes: Sequence[int]
    """Number of runs that each job trains, in the order of the runs."""
    options: JobOptions
    dependencies: Dependencies
    first_place: int
    """Index of the first run among the runs of the experiment."""


async def queue_trainings(
    session: Session, principal: Principal, experiment: ExperimentRow, request: TrainingRequest
) -> None:
    """Queues training jobs, each for one run or one pack of runs."""
    options = request.options
    columns = _columns(principal, experiment, options, options.schedule)
    columns |= request.dependencies.columns
    # IDs created within one millisecond are not ordered. Sorting them makes the queue train the
    # seeds in the order of the submission.
    runs = iter(request.runs)
    packs = [list(islice(runs, size)) for size in request.pack_sizes]
    first_place = request.first_place
    ids = sorted(new_id("job") for _ in packs)
    for first in range(0, len(packs), _JOBS_PER_STEP):
        step = slice(first, first + _JOBS_PER_STEP)
        some = dict(zip(ids[step], packs[step], strict=True))
        queued = await _queue_packs(
            session, principal, columns, some, first_place, request.dependencies
        )
        await _queue_follow_ups(session, principal, experiment, options, queued, some)
        first_place += sum(map(len, some.values()))


async def _queue_packs(
    session: Session,
    principal: Principal,
    columns: dict[str, Any],
    packs: Mapping[str, Sequence[RunRow]],
    first_place: int,
    before: Dependencies,
) -> Sequence[JobRow]:
    """Queues one job for each pack."""
    carried = {job_id: [run.id for run in pack] for job_id, pack in packs.items()}
    places = accumulate(map(len, packs.values()), initial=first_place)
    queued = await rows.insert_jobs(
        session,
        [
            {**columns, "id": job_id, "seed_index": place}
            for job_id, place in zip(packs, places, strict=False)
        ],
        carried,
    )
    await dependencies.store(session, queued, before)
    jobs_of_new_runs: list[tuple[RunRow, str]] = []
    for job in queued:
        for run in packs[job.id]:
            if run.job_id is None:
                jobs_of_new_runs.append((run, job.id))
            else:
                _make_current(principal, job, run)
    if jobs_of_new_runs:
        await experiment_rows.set_jobs(session, jobs_of_new_runs)
    await _record_queued(session, queued, carried, [run for pack in packs.values() for run in pack])
    await asyncio.sleep(0)
    return queued


async def _queue_follow_ups(
    session: Session,
    principal: Principal,
    experiment: ExperimentRow,
    options: JobOptions,
    trainings: Sequence[JobRow],
    packs: Mapping[str, Sequence[RunRow]],
) -> None:
    """Queues the jobs of `options.then` for each run, each after the success of the one before."""
    last = {run.id: job.id for job in trainings for run in packs[job.id]}
    runs_by_id = {run.id: run for pack in packs.values() for run in pack}
    for name in options.then:
        schedule = Schedule(name)
        columns = {
            **_columns(principal, experiment, options, schedule),
            **Dependencies(after=("",)).columns,
        }
        ids = {new_id("job"): run_id for run_id in last}
        carried = {job_id: [run_id] for job_id, run_id in ids.items()}
        queued = await rows.insert_jobs(
            session, [{**columns, "id": job_id} for job_id in ids], carried
        )
        await dependencies.store_each(
            session, {job_id: last[run_id] for job_id, run_id in ids.items()}
        )
        for job in queued:
            job_state.record_creation(
                session, job, runs_by_id[ids[job.id]], describe_actor(principal)
            )
        await _record_queued(session, queued, carried, [])
        last = {run_id: job_id for job_id, run_id in ids.items()}


def group_into_packs(runs: Sequence[_Run], options: JobOptions, agent: str) -> list[Sequence[_Run]]:
    """Groups runs into packs; one job trains each pack.

    Args:
        runs: Runs, or their seeds, in the order of the seeds in the submission.
        options: `resources.pack` is the number of runs per pack.
        agent: Name of the definition's agent.
    """
    pack = resolve_pack(options.resources.pack, len(runs), 0, is_packable=agent in PACKABLE_AGENTS)
    size = 1 if pack == "off" or not options.schedule.writes_training_state else pack
    return [runs[begin : begin + size] for begin in range(0, len(runs), size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStart:
    """The origin of the first attempt of a job."""

    afresh: bool = False
    allow_code_change: bool = False


async def submit(
    session: Session,
    principal: Principal,
    run_id: str,
    request: JobRequest,
) -> JobView:
    """Queues a job with a schedule on an existing run.

    Args:
        session: A writing session.
        principal: The caller.
        run_id: Run.
        request: Schedule and options; the pool defaults to that of the run's training.

    Raises:
        NotFoundError: If the project has no such run, or the run no such snapshot.
        InvalidError: If the pool's workers cannot execute the job, or the snapshot was deleted or
            is not verified.
        ConflictError: With the code `storage_limit_reached`, `quota_exceeded`, `run_busy` while a
            training job of the run has not ended, or `no_snapshot` if the run has no verified
            snapshot and, for a continuous schedule, no training that will write one.
    """
    job = await queue_job(session, principal, run_id, request, JobStart())
    (view,) = await build_job_views(session, [job])
    return view


async def queue_job(
    session: Session, principal: Principal, run_id: str, request: JobRequest, start: JobStart
) -> JobRow:
    """Queues a job like `submit`; returns its row.

    Args:
        session: A writing session.
        principal: The caller.
        run_id: Run.
        request: Schedule and options; the pool defaults to that of the run's training.
        start: What a training starts from.
    """
    run = await find_run(session, principal, run_id, request.schedule)
    if not await experiment_rows.lock_against_moves(session, run.project_id, run.experiment_id):
        raise NotFoundError("run")
    await storage_limits.check_submission(session, run.project_id)
    experiment = await experiment_rows.find(session, run.project_id, run.experiment_id)
    assert experiment is not None
    pool = request.pool or await _find_training_pool(session, run)
    request = request.model_copy(update={"pool": pool})
    request = await offers.check_job(session, experiment, request, any_code=start.allow_code_change)
    priority_classes.check(principal, run.project_id, request.priority_class, request.limits, "")
    await quotas.check_queued(session, run.project_id, principal.user_id, pool, 1, "/pool")
    before = await dependencies.check(session, run.project_id, request.after, request.on, "")
    if request.schedule.writes_training_state:
        await _check_idle(session, run)
    elif (
        not request.schedule.starts_runs
        and not (before.after and not request.evaluate.snapshot.startswith("snp_"))
        and await _must_have_snapshot(session, run, request.schedule)
    ):
        await snapshots.resolve(session, run.id, request.evaluate.snapshot)
    leads = request.schedule.writes_training_state or (
        request.schedule.starts_runs and run.id not in await rows.filter_trained(session, [run.id])
    )
    columns = {**_columns(principal, experiment, request, request.schedule), **asdict(start)}
    columns |= before.columns
    evaluate = None if request.schedule.starts_runs else request.evaluate.model_dump(mode="json")
    if request.schedule.writes_training_state:
        columns["seed_index"] = await experiment_rows.find_place_of_run(session, run)
    (job,) = await rows.insert_jobs(
        session,
        [{**columns, "id": (job_id := new_id("job")), "evaluate": evaluate}],
        {job_id: [run.id]},
    )
    await dependencies.store(session, [job], before)
    if leads:
        _make_current(principal, job, run)
    await _record_queued(session, [job], {job.id: [run.id]}, [run] if leads else [])
    job_state.record_creation(session, job, run, describe_actor(principal))
    return job


async def find_run(
    session: Session, principal: Principal, run_id: str, schedule: Schedule
) -> RunRow:
    """Returns a run on which the caller may queue a schedule; only trainings change the run."""
    run = await runs.find(session, principal, run_id)
    rights.require(principal, Permission.RUN_SUBMIT, run.project_id)
    rights.check_open(principal, run.project_id)
    if schedule.writes_training_state:
        rights.require_control(principal, run.project_id, run.created_by)
    return run


async def _find_training_pool(session: Session, run: RunRow) -> str:
    """Returns the pool of the job from which the run's state is derived.

    That job is the run's latest training, or a test before the first training.
    """
    job = None if run.job_id is None else await rows.find_by_id(session, run.job_id)
    return "default" if job is None else job.pool


async def _must_have_snapshot(session: Session, run: RunRow, schedule: Schedule) -> bool:
    if not schedule.follows_training:
        return True
    return await rows.find_unfinished_training(session, run.id) is None


def _make_current(principal: Principal, job: JobRow, run: RunRow) -> None:
    """Stores a new job as the job from which the run's state is derived.

    Resets the run's start and end times if the earlier job was a test.
    """
    values = job_state.derive_columns(job, run, TransitionDetails(actor=describe_actor(principal)))
    if run.fence == 0:
        values |= {"started_at": None, "finished_at": None}
    experiment_rows.change_run(run, {**values, "job_id": job.id})


async def _check_idle(session: Session, run: RunRow) -> None:
    await experiment_rows.lock_run(session, run.id)
    busy = await rows.find_unfinished_training(session, run.id)
    if busy is not None:
        how = "Resume it." if busy.state == JobState.PAUSED else "Wait until it ends, or cancel it."
        raise ConflictError(
            "run_busy",
            (
                f"The job {busy.id} of this run is {busy.state}; a run has one training job "
                f"at a time. {how}"
            ),
        )


def _columns(
    principal: Principal,
    experiment: ExperimentRow,
    options: JobOptions | JobRequest,
    schedule: Schedule,
) -> dict[str, Any]:
    return {
        "project_id": experiment.project_id,
        "experiment_id": experiment.id,
        "schedule": schedule,
        "state": JobState.QUEUED,
        "pool": options.pool,
        "priority_class": options.priority_class,
        "priority": options.priority,
        "gpus": options.resources.gpus,
        "resources": options.resources.model_dump(mode="json"),
        "limits": options.limits.model_dump(mode="json"),
        "evaluate": None if schedule.starts_runs else EvaluateOptions().model_dump(mode="json"),
        "work_order_version": choose_work_order_version(
            experiment.schema_version,
            options.resources,
            options.evaluate if isinstance(options, JobRequest) else None,
        ),
        "created_by": principal.user_id,
    }


async def _record_queued(
    session: Session,
    queued: Sequence[JobRow],
    run_ids: Mapping[str, Sequence[str]],
    changed: Sequence[RunRow],
) -> None:
    """Makes queued jobs known, with the runs of each, and the runs that changed with them."""
    announce(session, QUEUE)
    await queue_groups.join_group(session, queued)
    for job in queued:
        job_events.append_job_event(session, job, run_ids[job.id])
    for run in changed:
        run_events.append_run_event(session, run)
