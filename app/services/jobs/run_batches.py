"""Pauses, resumes, cancels or retries many runs in one request."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import run_batches as rows
from app.db.repositories.run_batches import ControllableRuns, SelectedRun
from app.db.repositories.run_groups import RunConditions, build_conditions
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services.jobs import jobs, retries
from app.services.jobs.batch_time import take_in_time
from app.services.lists import requests
from palestra.contract.job_options import RetryRequest
from palestra.contract.permissions import Permission
from palestra.contract.run_batches import (
    MAX_RETRIES_PER_REQUEST,
    MAX_RUNS_PER_REQUEST,
    RunRefusal,
    RunsActed,
    RunsAction,
    RunVerb,
)
from palestra.contract.states import RunState

_STATES: Final[Mapping[RunVerb, frozenset[RunState]]] = {
    RunVerb.PAUSE: frozenset({RunState.QUEUED, RunState.RUNNING}),
    RunVerb.RESUME: frozenset({RunState.PAUSED}),
    RunVerb.CANCEL: frozenset({RunState.QUEUED, RunState.RUNNING, RunState.PAUSED}),
    RunVerb.RETRY: frozenset({RunState.FAILED, RunState.CANCELLED}),
}
"""The states in which an action changes something."""

_ACTIONS: Final[Mapping[RunVerb, Callable[[Session, Principal, str, str], Awaitable[JobRow]]]] = {
    RunVerb.PAUSE: jobs.apply_pause,
    RunVerb.RESUME: jobs.apply_resume,
    RunVerb.CANCEL: jobs.apply_cancel,
}


async def act(
    session: Session,
    principal: Principal,
    wanted: RunsAction,
    clock: Callable[[], float] = time.monotonic,
) -> RunsActed:
    """Acts on the selected runs, at most 100 or 50 retries; counts them alone with `dry_run`.

    Acts on the latest training job of each run, and so on the other runs of a pack. A run for which
    the action is refused does not keep others from it. A repeated request changes nothing more: a
    run that was changed is in no state any more in which the action changes something. After
    `MAX_SECONDS` of `clock` no further run is begun.

    Raises:
        InvalidError: If the filter cannot be read, or names what does not exist.
    """
    mine = ControllableRuns(
        user_id=principal.user_id,
        all_in=principal.projects_with(Permission.RUN_CONTROL_ANY),
        own_in=principal.projects_with(Permission.RUN_CONTROL_OWN),
    )
    conditions = await _select(session, principal, wanted)
    matched, permitted = await rows.count(session, conditions, mine)
    sharing = 0
    if wanted.action is not RunVerb.RETRY:
        sharing = await rows.count_same_jobs(session, conditions, mine)
    most = MAX_RETRIES_PER_REQUEST if wanted.action is RunVerb.RETRY else MAX_RUNS_PER_REQUEST
    chosen = [] if wanted.dry_run else await rows.list_selected(session, conditions, mine, most)
    refusals = await _act_on_all(session, principal, take_in_time(chosen, clock), wanted)
    acted = list(refusals)
    return RunsActed(
        matched=permitted,
        not_permitted=matched - permitted,
        same_jobs=sharing,
        done=tuple(run_id for run_id, refusal in refusals.items() if refusal is None),
        refused=tuple(refusal for refusal in refusals.values() if refusal is not None),
        next_after=acted[-1] if 0 < len(acted) < permitted else None,
    )


async def _select(session: Session, principal: Principal, wanted: RunsAction) -> RunConditions:
    """Returns the conditions that a run is selected and in a state that the action changes."""
    selection = wanted.selection
    try:
        terms = list(requests.read_terms(selection.filter, "runs", principal))
        found = await requests.resolve(
            session, principal, "runs", terms=terms, sort="created", columns=()
        )
    except InvalidError as error:
        raise InvalidError(
            error.code, error.detail, pointer="/selection/filter", **error.extra
        ) from None
    return await build_conditions(
        session,
        terms,
        found.scope,
        run_ids=selection.runs,
        states=_STATES[wanted.action],
        after=wanted.after,
    )


async def _act_on_all(
    session: Session, principal: Principal, chosen: Iterable[SelectedRun], wanted: RunsAction
) -> dict[str, RunRefusal | None]:
    """Returns the refusal of each run, `None` where it was changed."""
    refusals: dict[str, RunRefusal | None] = {}
    of_jobs: dict[str, RunRefusal | None] = {}
    for run in chosen:
        # The runs of a pack share a job, which is changed once for all of them.
        key = run.id if wanted.action is RunVerb.RETRY or run.job_id is None else run.job_id
        if key not in of_jobs:
            of_jobs[key] = await _act_on_one(session, principal, run, wanted)
        refusal = of_jobs[key]
        refusals[run.id] = refusal and refusal.model_copy(update={"run_id": run.id})
    return refusals


async def _act_on_one(
    session: Session, principal: Principal, run: SelectedRun, wanted: RunsAction
) -> RunRefusal | None:
    try:
        await _change(session, principal, run, wanted)
    except (ConflictError, ForbiddenError, InvalidError, NotFoundError) as refusal:
        return RunRefusal(run_id=run.id, code=refusal.code, detail=str(refusal))
    return None


async def _change(
    session: Session, principal: Principal, run: SelectedRun, wanted: RunsAction
) -> None:
    if wanted.action is RunVerb.RETRY:
        request = RetryRequest(origin=wanted.origin, reason=wanted.reason)
        await retries.apply_retry(session, principal, run.id, request)
    elif run.job_id is None:
        raise ConflictError("no_training_job", "No training of this run was queued yet.")
    else:
        await _ACTIONS[wanted.action](session, principal, run.job_id, wanted.reason)
