"""The only function that writes a job's state, and the events of such a change.

`move` checks the table of transitions, writes the state by compare-and-set, appends to the audit
log, updates the derived state of the job's runs and appends events, all in the caller's
transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.db.engine import QUEUE, Session, announce
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import JobRow, JobRunRow
from app.db.repositories import dependencies, queue_groups
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.domain import transitions
from app.domain.derived_states import derive_ended_run_state, run_state
from app.domain.errors import ConflictError
from app.services.audit import audit_log
from app.services.events import event_log
from app.services.snapshots import snapshots
from app.services.views.experiments import build_experiment_views
from app.services.views.jobs import build_job_views
from app.services.views.runs import run_views
from palestra.contract.names import Schedule
from palestra.contract.states import FINAL_JOB_STATES, Cause, JobState, Outcome, ResumeQuality
from palestra.contract.work_order import Failure

_DEPENDENCY_ACTOR: Final = "daemon:dependencies"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionDetails:
    """Actor, cause and further details of a change of a job's state."""

    actor: str
    """`user:...`, `token:...`, `attempt:...`, `worker:...` or `daemon:NAME`."""
    cause: Cause | None = None
    failure: Failure | None = None
    reason: str = ""
    """Text that the user gave with a pause, resume or cancel."""
    delay: float = 0.0
    """Seconds for which the queued job may not start."""
    resume_quality: ResumeQuality | None = None


_NO_SNAPSHOT: Final = TransitionDetails(
    actor=_DEPENDENCY_ACTOR,
    cause=Cause.NO_RESULT,
    failure=Failure(
        message="The jobs before it have ended, and its run has no verified snapshot to read."
    ),
)


async def move(
    session: Session,
    job: JobRow,
    to: JobState,
    details: TransitionDetails,
    *,
    claim: int | None = None,
) -> None:
    """Changes the state of a job, and of the jobs that wait for its end.

    Args:
        session: A writing session.
        job: The job as it was read in this transaction; brought up to date.
        to: The new state.
        details: Actor and cause of the change.
        claim: Number of the attempt that a claim creates; the job's delay must have passed.

    Raises:
        ConflictError: If the table has no such transition (`already_final`,
            `invalid_transition`), or if another transaction changed the job (`state_changed`).
    """
    await _move_one(session, job, to, details, claim=claim)
    if to in FINAL_JOB_STATES:
        await _release_dependants(session, job)


async def _release_dependants(session: Session, ended: JobRow) -> None:
    """Releases or cancels the jobs that wait for an ended one, and those that wait for them."""
    pending = [ended]
    while pending:
        before = pending.pop()
        conditions = await dependencies.close(session, before.id)
        for job in await dependencies.count_down(session, conditions):
            if job.state not in {JobState.QUEUED, JobState.PAUSED}:
                continue
            needs_success = conditions[job.id] == dependencies.SUCCESS
            if needs_success and before.state != JobState.SUCCEEDED:
                await _move_one(session, job, JobState.CANCELLED, _explain_cancellation(before))
                pending.append(job)
            elif not job.open_dependencies and await _lacks_snapshot(session, job):
                await _move_one(session, job, JobState.FAILED, _NO_SNAPSHOT)
                pending.append(job)
            else:
                if job.state == JobState.QUEUED:
                    await queue_groups.join_group(session, [job])
                await append_events(session, job)


async def _lacks_snapshot(session: Session, job: JobRow) -> bool:
    """Returns whether a job reads a snapshot of its run, and that has none."""
    schedule = Schedule(job.schedule)
    if schedule.starts_runs or schedule.follows_training:
        return False
    run_ids = (await job_rows.load_run_ids(session, [job.id]))[job.id]
    found = [await snapshots.find_newest_verified(session, run_id) for run_id in run_ids]
    return None in found


def _explain_cancellation(before: JobRow) -> TransitionDetails:
    how = "failed" if before.state == JobState.FAILED else "was cancelled"
    message = f"The job {before.id}, which had to succeed before, {how}."
    return TransitionDetails(
        actor=_DEPENDENCY_ACTOR, cause=Cause.DEPENDENCY, failure=Failure(message=message)
    )


async def _move_one(
    session: Session,
    job: JobRow,
    to: JobState,
    details: TransitionDetails,
    *,
    claim: int | None = None,
) -> None:
    old = JobState(job.state)
    transitions.check(old, to)
    conditions = () if claim is None else (job_rows.may_start_now(),)
    if not await job_rows.move(session, job, to, _values(old, to, details, claim), *conditions):
        raise ConflictError(
            "state_changed",
            (
                "The job changed while this request was under way. Read its state again and "
                "decide anew."
            ),
        )
    _audit(session, job, old, to, details)
    announce(session, QUEUE)
    if to is JobState.QUEUED:
        await queue_groups.join_group(session, [job])
    if Schedule(job.schedule).starts_runs:
        await _derive_runs(session, job, details)
    await append_events(session, job)


def _values(
    old: JobState, to: JobState, details: TransitionDetails, claim: int | None
) -> Mapping[str, Any]:
    values = dict(job_rows.columns_of_assignment(to))
    if claim is not None:
        values |= job_rows.get_claim_columns(claim)
    if to is JobState.QUEUED:
        # Who pauses a job gives up its place; who lost a machine does not.
        keeps_place = old is not JobState.PAUSED
        values |= job_rows.get_queueing_columns(details.delay, keeps_place=keeps_place)
    if to in FINAL_JOB_STATES:
        values |= job_rows.get_end_columns()
    if details.cause is not None:
        values |= {
            "cause": details.cause.value,
            "failure": None if details.failure is None else details.failure.model_dump(mode="json"),
        }
    return values


def _audit(
    session: Session, job: JobRow, old: JobState, to: JobState, details: TransitionDetails
) -> None:
    change = {
        "from": old.value,
        "to": to.value,
        "attempt": job.attempt,
        "cause": details.cause,
        "reason": details.reason,
    }
    audit_log.record(
        session,
        "job.move",
        job.id,
        project_id=job.project_id,
        actor=details.actor,
        data={key: value for key, value in change.items() if value not in {None, ""}},
    )


def record_creation(session: Session, job: JobRow, run: RunRow, actor: str) -> None:
    """Appends the audit entry of a job that was queued on an existing run."""
    audit_log.record(
        session,
        "job.create",
        job.id,
        project_id=job.project_id,
        actor=actor,
        data={"run": run.id, "schedule": job.schedule, "pool": job.pool},
    )


async def _derive_runs(session: Session, job: JobRow, details: TransitionDetails) -> None:
    ended = await job_rows.load_run_ends(session, job.id)
    for run in await experiment_rows.list_runs_for_job(session, job.id):
        if run.job_id == job.id:
            values = _ended(ended[run.id]) if run.id in ended else derive_columns(job, run, details)
            await experiment_rows.set_run(session, run.id, values)


def _ended(end: JobRunRow) -> dict[str, Any]:
    state = derive_ended_run_state(Outcome(end.outcome or Outcome.SUCCEEDED))
    return {
        "state": state.value,
        "cause": end.cause,
        "failure": end.failure,
        "finished_at": end.ended_at,
    }


def derive_columns(job: JobRow, run: RunRow, details: TransitionDetails) -> dict[str, Any]:
    """Returns the columns of a run that are derived from its latest training job."""
    quality = (
        details.resume_quality.value if details.resume_quality is not None else run.resume_quality
    )
    return {
        "state": run_state(JobState(job.state)).value,
        "cause": job.cause,
        "failure": job.failure,
        "started_at": run.started_at or job.started_at,
        "finished_at": job.finished_at,
        "resume_quality": quality,
    }


async def append_events(session: Session, job: JobRow) -> None:
    """Appends the events of a changed job, of the runs that it trains, and of their experiment."""
    await session.flush()
    await append_job_events(session, [job])
    if Schedule(job.schedule).starts_runs:
        await append_run_events(session, await experiment_rows.list_runs_for_job(session, job.id))
        experiment = await experiment_rows.find(session, job.project_id, job.experiment_id)
        if experiment is not None:
            await append_experiment_event(session, experiment)


async def append_job_events(session: Session, jobs: Sequence[JobRow]) -> None:
    """Appends an event for each changed job; the events hold no places in the queue."""
    for row, view in zip(
        jobs, await build_job_views(session, jobs, with_places=False), strict=True
    ):
        run_id = view.run_ids[0] if len(view.run_ids) == 1 else None
        event_log.record(
            session,
            "job",
            view,
            project_id=row.project_id,
            experiment_id=row.experiment_id,
            run_id=run_id,
            job_id=row.id,
        )


async def append_run_events(session: Session, runs: Sequence[RunRow]) -> None:
    """Appends an event with the view of each changed run."""
    for row, view in zip(runs, await run_views(session, runs), strict=True):
        event_log.record(
            session,
            "run",
            view,
            project_id=row.project_id,
            experiment_id=row.experiment_id,
            run_id=row.id,
            job_id=row.job_id,
        )


async def append_experiment_event(session: Session, experiment: ExperimentRow) -> None:
    """Appends an event with the view of a changed experiment."""
    (view,) = await build_experiment_views(session, [experiment])
    event_log.record(
        session, "experiment", view, project_id=experiment.project_id, experiment_id=experiment.id
    )
