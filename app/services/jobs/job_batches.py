"""Pauses, resumes, cancels or changes many jobs in one request."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import job_batches as rows
from app.db.repositories.job_batches import Controllable
from app.db.repositories.jobs import JobFilter
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services.jobs import jobs, waiting_jobs
from app.services.jobs.batch_time import take_in_time
from palestra.contract.job_batches import (
    MAX_JOBS_PER_REQUEST,
    JobRefusal,
    JobsActed,
    JobsAction,
    JobVerb,
)
from palestra.contract.permissions import Permission
from palestra.contract.states import FINAL_JOB_STATES, JobState

_STATES: Final[Mapping[JobVerb, frozenset[JobState]]] = {
    JobVerb.PAUSE: frozenset(
        {JobState.QUEUED, JobState.STARTING, JobState.RUNNING, JobState.PREEMPTING}
    ),
    JobVerb.RESUME: frozenset({JobState.PAUSED}),
    JobVerb.CANCEL: frozenset(JobState) - FINAL_JOB_STATES - {JobState.CANCELLING},
    JobVerb.CHANGE: frozenset({JobState.QUEUED}),
}
"""The states in which an action changes something."""

_ACTIONS: Final[Mapping[JobVerb, Callable[[Session, Principal, str, str], Awaitable[JobRow]]]] = {
    JobVerb.PAUSE: jobs.apply_pause,
    JobVerb.RESUME: jobs.apply_resume,
    JobVerb.CANCEL: jobs.apply_cancel,
}


async def act(
    session: Session,
    principal: Principal,
    wanted: JobsAction,
    clock: Callable[[], float] = time.monotonic,
) -> JobsActed:
    """Acts on the selected jobs, at most 100; counts them alone with `dry_run`.

    A job for which the action is refused does not keep others from it. After `MAX_SECONDS` of
    `clock` no further job is begun.

    Raises:
        InvalidError: `invalid_state` if the action changes nothing in a selected state;
            `change_needed` or `change_without_effect` if `change` does not fit the action.
    """
    chosen = _build_filter(principal, wanted)
    mine = Controllable(
        user_id=principal.user_id,
        all_in=principal.projects_with(Permission.RUN_CONTROL_ANY),
        own_in=principal.projects_with(Permission.RUN_CONTROL_OWN),
    )
    wide = principal.project_ids
    matched, permitted = await rows.count(session, wide, chosen, mine, wanted.after)
    most = 0 if wanted.dry_run else MAX_JOBS_PER_REQUEST
    ids = await rows.list_ids(session, wide, chosen, mine, wanted.after, most) if most else ()
    refusals = {
        job_id: await _act_on_one(session, principal, job_id, wanted)
        for job_id in take_in_time(ids, clock)
    }
    acted = list(refusals)
    return JobsActed(
        matched=permitted,
        not_permitted=matched - permitted,
        done=tuple(job_id for job_id, refusal in refusals.items() if refusal is None),
        refused=tuple(refusal for refusal in refusals.values() if refusal is not None),
        next_after=acted[-1] if 0 < len(acted) < permitted else None,
    )


async def _act_on_one(
    session: Session, principal: Principal, job_id: str, wanted: JobsAction
) -> JobRefusal | None:
    try:
        if wanted.change is not None:
            await waiting_jobs.apply_change(session, principal, job_id, wanted.change)
        else:
            await _ACTIONS[wanted.action](session, principal, job_id, wanted.reason)
    except (ConflictError, ForbiddenError, InvalidError, NotFoundError) as refusal:
        return JobRefusal(job_id=job_id, code=refusal.code, detail=str(refusal))
    return None


def _build_filter(principal: Principal, wanted: JobsAction) -> JobFilter:
    _check_change(wanted)
    selection, possible = wanted.selection, _STATES[wanted.action]
    without_effect = set(selection.states) - possible
    if without_effect:
        raise InvalidError(
            "invalid_state",
            f"No job that is {min(without_effect)} can be asked to {wanted.action}. States "
            f"in which that changes something: {', '.join(sorted(possible))}.",
            pointer="/selection/states",
        )
    return JobFilter(
        experiment_id=selection.experiment,
        run_id=selection.run,
        pool=selection.pool,
        priority_class=selection.priority_class,
        states=frozenset(selection.states) or possible,
        schedule=selection.schedule,
        user=principal.user if selection.user == "me" else selection.user,
        ids=selection.jobs,
    )


def _check_change(wanted: JobsAction) -> None:
    if wanted.action is JobVerb.CHANGE and wanted.change is None:
        raise InvalidError(
            "change_needed",
            "Say what to change of the jobs: priority_class, priority or limits.",
            pointer="/change",
        )
    if wanted.action is not JobVerb.CHANGE and wanted.change is not None:
        raise InvalidError(
            "change_without_effect",
            f"The action {wanted.action} changes neither class nor limits. Leave `change` out, or "
            "give the action change.",
            pointer="/change",
        )
