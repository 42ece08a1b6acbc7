"""Ends attempts, by their own report or as lost, and updates the state of their jobs."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.repositories import attempts as rows
from app.db.repositories import audit
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.domain import attempt_end, retry
from app.domain.retry import FailureHistory, RetryDecision
from app.services.attempts import usage_entries
from app.services.events import event_log
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from app.services.snapshots import snapshots
from app.services.telemetry import run_logs
from app.services.views.jobs import build_attempt_view, read_member
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import Limits
from palestra.contract.names import CompileMode
from palestra.contract.resources import AttemptView
from palestra.contract.states import AttemptState, Cause, JobState, Outcome
from palestra.contract.work_order import AttemptReport, Failure


async def end_by_report(
    session: Session, job: JobRow, attempt: AttemptRow, report: AttemptReport
) -> AttemptView | None:
    """Ends a live attempt with the outcome of its report; `None` if it had ended already."""
    values = {
        "outcome": report.outcome,
        "cause": report.cause,
        "failure": None
        if report.failure is None
        else clean(report.failure).model_dump(mode="json"),
        "resume_quality": report.resume_quality,
        "provenance": report.provenance,
        "compile": read_member(report.provenance, "compile", CompileMode) or attempt.compile,
        "env_step": report.env_step,
        "update": report.update,
    }
    carried = await rows.end(session, attempt, AttemptState.ENDED, values)
    if carried is None:
        return None
    await _end_runs(session, job, {one.run_id for one in carried}, report)
    return await _follow(session, job, attempt, carried, f"attempt:{attempt.id}")


async def _end_runs(
    session: Session, job: JobRow, carried: Collection[str], report: AttemptReport
) -> None:
    """Stores the end of each run of a pack that succeeded or failed; other runs stay in the job."""
    for end in report.runs:
        if end.run_id in carried and end.outcome in {Outcome.SUCCEEDED, Outcome.FAILED}:
            failure = None if end.failure is None else clean(end.failure).model_dump(mode="json")
            values = {"outcome": end.outcome, "cause": end.cause, "failure": failure}
            await job_rows.end_run(session, job.id, end.run_id, values)


async def end_as_lost(session: Session, attempt_id: str, cause: Cause, actor: str) -> bool:
    """Ends a live attempt whose supervisor is known to be gone; `False` if it had ended already.

    Args:
        session: A writing session.
        attempt_id: The attempt.
        cause: Why the attempt is lost.
        actor: The actor who reports the loss, as stored in the audit log.
    """
    found = await _lock(session, attempt_id)
    if found is None:
        return False
    job, attempt = found
    carried = await rows.end(
        session, attempt, AttemptState.LOST, {"outcome": Outcome.LOST, "cause": cause}
    )
    if carried is None:
        return False
    await _follow(session, job, attempt, carried, actor)
    return True


async def end_as_expired(
    session: Session, attempt_id: str, silent_seconds: float, actor: str
) -> bool:
    """Ends a live attempt whose lease was not renewed for `silent_seconds`.

    The time is checked again under a lock: `False` if the attempt has ended or was renewed.
    """
    found = await _lock(session, attempt_id)
    if found is None:
        return False
    expired = await rows.expire(session, attempt_id, silent_seconds)
    if expired is None:
        return False
    await _follow(session, found[0], *expired, actor)
    return True


async def _lock(session: Session, attempt_id: str) -> tuple[JobRow, AttemptRow] | None:
    attempt = await rows.find(session, attempt_id)
    job = None if attempt is None else await job_rows.find_by_id(session, attempt.job_id, lock=True)
    return None if attempt is None or job is None else (job, attempt)


async def _follow(
    session: Session,
    job: JobRow,
    attempt: AttemptRow,
    carried: Sequence[AttemptRunRow],
    actor: str,
) -> AttemptView:
    outcome = attempt.outcome or Outcome.LOST
    cause = attempt.cause or Cause.WORKER_LOST
    decision = _decide_retry(job, outcome, cause, _lived(attempt))
    ended = await rows.load_facts(session, attempt.id)
    await run_logs.complete_open_lines(session, job, attempt)
    await usage_entries.book(session, job, attempt, ended.environment)
    links = await job_rows.list_runs_with_links(session, job.id)
    training = {one.run_id for one in carried if one.training}
    for run, _ in links:
        if run.id in training:
            experiment_rows.change_run(run, {"env_steps_per_second": None})
    if ended.is_uploading:
        await snapshots.skip_rest(session, attempt.id)
    await job_rows.set_history(session, job, decision.history)
    has_begun = cause is Cause.CODE_CHANGED and await _has_begun(session, job, attempt)
    states = attempt_end.list_states(
        job.state,
        outcome,
        decision.cause,
        is_requeued=decision.is_requeued,
        has_begun=has_begun,
    )
    for state in states:
        details = _transition_details(attempt, actor, decision, outcome, last=state is states[-1])
        await job_state.move(session, job, state, details, runs=links)
    return append_attempt_event(session, job, attempt, carried, ended.worker_name)


async def _has_begun(session: Session, job: JobRow, attempt: AttemptRow) -> bool:
    """Returns whether a training job was paused, or had an attempt, before this attempt."""
    if not job.schedule.writes_training_state:
        return False
    moves = await audit.list_for_object(session, job.project_id, "job", job.id)
    return attempt.number > 1 or any(row.data.get("to") == JobState.PAUSED for row in moves)


def _decide_retry(job: JobRow, outcome: Outcome, cause: Cause, lived: float) -> RetryDecision:
    history = FailureHistory(
        infrastructure_failures=job.infrastructure_failures,
        failed_starts=job.failed_starts,
        counted_failures=job.counted_failures,
        quick_deaths=job.quick_deaths,
    )
    if outcome not in {Outcome.FAILED, Outcome.LOST}:
        history = replace(history, counted_failures=0, quick_deaths=0)
        return RetryDecision(is_requeued=False, delay=0, cause=cause, history=history)
    limits = Limits.model_validate_json(encode_canonical_json(job.limits))
    return retry.decide(cause, lived, history, limits.max_attempts)


def _lived(attempt: AttemptRow) -> float:
    last = attempt.renewed_at if attempt.cause == Cause.LEASE_EXPIRED else attempt.ended_at
    return 0.0 if last is None else max(0.0, (last - attempt.started_at).total_seconds())


def _transition_details(
    attempt: AttemptRow, actor: str, decision: RetryDecision, outcome: Outcome, *, last: bool
) -> TransitionDetails:
    failure = (
        None
        if attempt.failure is None
        else Failure.model_validate_json(encode_canonical_json(attempt.failure))
    )
    if failure is None and outcome in {Outcome.FAILED, Outcome.LOST}:
        failure = Failure(message=attempt_end.describe_cause(decision.cause))
    return TransitionDetails(
        actor=actor,
        cause=decision.cause,
        failure=failure,
        delay=decision.delay if last else 0.0,
        resume_quality=attempt.resume_quality,
    )


def append_attempt_event(
    session: Session,
    job: JobRow,
    attempt: AttemptRow,
    carried: Sequence[AttemptRunRow],
    worker_name: str,
) -> AttemptView:
    """Appends the event of a changed attempt, given the runs that it carries; returns its view."""
    view = build_attempt_view(attempt, carried, worker_name)
    event_log.record(
        session,
        "attempt",
        view,
        project_id=job.project_id,
        experiment_id=job.experiment_id,
        run_id=carried[0].run_id if len(carried) == 1 else None,
        job_id=job.id,
    )
    return view


def clean(failure: Failure) -> Failure:
    """Replaces NUL characters in a failure by U+FFFD, since PostgreSQL cannot store them."""
    return Failure(
        **clean_document(
            {name: text for name, text in failure.model_dump().items() if text is not None}
        )
    )


def clean_document(document: dict[str, Any]) -> dict[str, Any]:
    """Replaces NUL characters in the strings of a flat document by U+FFFD."""
    return {
        name: value.replace("\0", "\ufffd") if isinstance(value, str) else value
        for name, value in document.items()
    }
