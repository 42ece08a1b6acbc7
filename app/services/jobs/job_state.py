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
from app.services.jobs import job_events
from app.services.runs import run_events
from app.services.snapshots import snapshots
from app.services.views.experiments import build_experiment_views
from palestra.contract.names import TrainerPhase
from palestra.contract.resources import ExperimentView
from palestra.contract.states import (
    FINAL_JOB_STATES,
    LIVE_JOB_STATES,
    Cause,
    JobState,
    Outcome,
    ResumeQuality,
)
from palestra.contract.work_order import Failure

_DEPENDENCY_ACTOR: Final = "daemon:dependencies"
_NO_CHANGES: Final[Mapping[str, Any]] = {}


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
    runs: Sequence[tuple[RunRow, JobRunRow]] = (),
) -> None:
    """Changes the state of a job, and of the jobs that wait for its end.

    Args:
        session: A writing session.
        job: The job as it was read in this transaction; brought up to date.
        to: The new state.
        details: Actor and cause of the change.
        claim: Number of the attempt that a claim creates; the job's delay must have passed.
        runs: Its runs with their links, if they were read in this transaction.

    Raises:
        ConflictError: If the table has no such transition (`already_final`,
            `invalid_transition`), or if another transaction changed the job (`state_changed`).
    """
    await _move_one(session, job, to, details, claim=claim, runs=runs)
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
    schedule = job.schedule
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
    runs: Sequence[tuple[RunRow, JobRunRow]] = (),
) -> None:
    old = job.state
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
    if to not in LIVE_JOB_STATES:
        # A job became ready, or what it held became free; a claim does neither.
        announce(session, QUEUE)
    if to is JobState.QUEUED:
        await queue_groups.join_group(session, [job])
    links = runs or await job_rows.list_runs_with_links(session, job.id)
    if job.schedule.starts_runs:
        _derive_runs(job, links, details)
    # Of a job without a live attempt nothing waits to be uploaded; a claim begins with nothing.
    goes_on = to in LIVE_JOB_STATES and claim is None
    _append_events(
        session,
        job,
        [run for run, _ in links],
        {} if goes_on else {"not_uploaded": None},
        {} if goes_on else {"phase": None if claim is None else first_phase(job)},
    )


def first_phase(job: JobRow) -> TrainerPhase | None:
    """Returns the phase of an attempt of a job until its supervisor states one."""
    return "starting" if job.schedule.writes_training_state else None


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
            "cause": details.cause,
            "failure": None if details.failure is None else details.failure.model_dump(mode="json"),
        }
    return values


def _audit(
    session: Session, job: JobRow, old: JobState, to: JobState, details: TransitionDetails
) -> None:
    change = {
        "from": old,
        "to": to,
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


def _derive_runs(
    job: JobRow, links: Sequence[tuple[RunRow, JobRunRow]], details: TransitionDetails
) -> None:
    for run, link in links:
        if run.job_id == job.id:
            has_ended = link.outcome is not None
            values = _ended(link) if has_ended else derive_columns(job, run, details)
            experiment_rows.change_run(run, values)


def _ended(end: JobRunRow) -> dict[str, Any]:
    state = derive_ended_run_state(end.outcome or Outcome.SUCCEEDED)
    return {
        "state": state,
        "cause": end.cause,
        "failure": end.failure,
        "finished_at": end.ended_at,
    }


def derive_columns(job: JobRow, run: RunRow, details: TransitionDetails) -> dict[str, Any]:
    """Returns the columns of a run that are derived from its latest training job."""
    quality = details.resume_quality if details.resume_quality is not None else run.resume_quality
    return {
        "state": run_state(job.state),
        "cause": job.cause,
        "failure": job.failure,
        "started_at": run.started_at or job.started_at,
        "finished_at": job.finished_at,
        "resume_quality": quality,
    }


async def append_events(
    session: Session,
    job: JobRow,
    changes: Mapping[str, Any] = _NO_CHANGES,
    run_changes: Mapping[str, Any] = _NO_CHANGES,
) -> None:
    """Appends the events of a changed job, of the runs that it trains, and of their experiment.

    Args:
        session: A writing session.
        job: The job.
        changes: Further members of the views of the job and of its runs, as JSON.
        run_changes: Further members of the views of its runs alone, as JSON.
    """
    links = await job_rows.list_runs_with_links(session, job.id)
    _append_events(session, job, [run for run, _ in links], changes, run_changes)


def _append_events(
    session: Session,
    job: JobRow,
    runs: Sequence[RunRow],
    changes: Mapping[str, Any],
    run_changes: Mapping[str, Any],
) -> None:
    job_events.append_job_event(session, job, [run.id for run in runs], changes)
    if job.schedule.starts_runs:
        for run in runs:
            run_events.append_run_event(session, run, {**changes, **run_changes})
        job_events.append_runs_changed(session, job)


async def append_experiment_event(session: Session, experiment: ExperimentRow) -> ExperimentView:
    """Appends an event with the view of a changed experiment, and returns the view."""
    (view,) = await build_experiment_views(session, [experiment])
    event_log.record(
        session, "experiment", view, project_id=experiment.project_id, experiment_id=experiment.id
    )
    return view
