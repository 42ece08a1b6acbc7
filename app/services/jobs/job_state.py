"""The gate: the one function that writes a job's state.

A move consults the table of transitions, writes the state by compare-and-set, appends to the audit
log, brings the derived state of the job's runs up to date and registers the live messages, all in
the caller's transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.db.engine import QUEUE, Session, announce
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import JobRow, JobRunRow
from app.db.repositories import audit
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.domain import transitions
from app.domain.derived_states import ended_run_state, run_state
from app.domain.errors import ConflictError
from app.services.events import event_log
from app.services.views.experiments import experiment_views
from app.services.views.jobs import job_views
from app.services.views.runs import run_views
from palestra.contract.names import Schedule
from palestra.contract.states import FINAL_JOB_STATES, Cause, JobState, Outcome, ResumeQuality
from palestra.contract.work_order import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Who moves a job, and why."""

    actor: str
    """`user:...`, `token:...`, `attempt:...`, `worker:...` or `daemon:NAME`."""
    cause: Cause | None = None
    failure: Failure | None = None
    reason: str = ""
    """A person's words."""
    delay: float = 0.0
    """Seconds that a job stays in the queue before it may start."""
    resume_quality: ResumeQuality | None = None


async def move(
    session: Session, job: JobRow, to: JobState, why: Why, *, claim: int | None = None
) -> None:
    """Moves a job to another state.

    Args:
        session: A writing session.
        job: The job as it was read in this transaction; brought up to date.
        to: The new state.
        why: Who moves it and why.
        claim: Number of the attempt that the move makes; then the job's delay must be over.

    Raises:
        ConflictError: If the table does not allow it (`already_final`, `invalid_transition`), or if
            somebody was faster (`state_changed`).
    """
    old = JobState(job.state)
    transitions.check(old, to)
    conditions = () if claim is None else (job_rows.may_start_now(),)
    if not await job_rows.move(session, job, to, _values(to, why, claim), *conditions):
        raise ConflictError(
            "state_changed",
            (
                "The job changed while this request was under way. Read its state again and "
                "decide anew."
            ),
        )
    _audit(session, job, old, to, why)
    announce(session, QUEUE)
    if Schedule(job.schedule).starts_runs:
        await _derive_runs(session, job, why)
    await append_events(session, job)


def _values(to: JobState, why: Why, claim: int | None) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    if claim is not None:
        values |= job_rows.claimed_now(claim)
    if to is JobState.QUEUED:
        values |= job_rows.queued_now(why.delay)
    if to in FINAL_JOB_STATES:
        values |= job_rows.ended_now()
    if why.cause is not None:
        values |= {
            "cause": why.cause.value,
            "failure": None if why.failure is None else why.failure.model_dump(mode="json"),
        }
    return values


def _audit(session: Session, job: JobRow, old: JobState, to: JobState, why: Why) -> None:
    change = {
        "from": old.value,
        "to": to.value,
        "attempt": job.attempt,
        "cause": why.cause,
        "reason": why.reason,
    }
    row = {
        "project_id": job.project_id,
        "actor": why.actor,
        "action": "job.move",
        "object_type": "job",
        "object_id": job.id,
    }
    audit.append(
        session,
        {**row, "data": {key: value for key, value in change.items() if value not in {None, ""}}},
    )


async def _derive_runs(session: Session, job: JobRow, why: Why) -> None:
    ended = await job_rows.ends(session, job.id)
    for run in await experiment_rows.runs_of_job(session, job.id):
        if run.job_id == job.id:
            values = _ended(ended[run.id]) if run.id in ended else derived(job, run, why)
            await experiment_rows.set_run(session, run.id, values)


def _ended(end: JobRunRow) -> dict[str, Any]:
    state = ended_run_state(Outcome(end.outcome or Outcome.SUCCEEDED))
    return {
        "state": state.value,
        "cause": end.cause,
        "failure": end.failure,
        "finished_at": end.ended_at,
    }


def derived(job: JobRow, run: RunRow, why: Why) -> dict[str, Any]:
    """Returns the columns of a run that follow from its latest training job."""
    quality = why.resume_quality.value if why.resume_quality is not None else run.resume_quality
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
        await append_run_events(session, await experiment_rows.runs_of_job(session, job.id))
        experiment = await experiment_rows.get(session, job.project_id, job.experiment_id)
        if experiment is not None:
            await append_experiment_event(session, experiment)


async def append_job_events(session: Session, jobs: Sequence[JobRow]) -> None:
    """Registers the live messages of changed jobs."""
    for row, view in zip(jobs, await job_views(session, jobs), strict=True):
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
    """Registers the live messages of changed runs."""
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
    """Registers the live message of a changed experiment."""
    (view,) = await experiment_views(session, [experiment])
    event_log.record(
        session, "experiment", view, project_id=experiment.project_id, experiment_id=experiment.id
    )
