"""Views of jobs and attempts, many at a time: a list costs a fixed number of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.repositories import access as access_rows
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import dependencies as dependency_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import workers as worker_rows
from app.domain.queue.waiting import explain
from app.services.queue import queue_facts, start_estimates
from app.services.queue.queue_facts import QueuePlace
from app.services.views.columns import build_view
from app.services.views.login_names import load_login_names
from app.services.views.runs import build_backlog_view
from palestra.contract.names import Simulator
from palestra.contract.resources import (
    AttemptView,
    JobView,
)
from palestra.contract.states import JobState


async def build_job_views(
    session: Session,
    rows: Sequence[JobRow],
    *,
    with_places: bool = True,
    known_places: Mapping[str, QueuePlace] | None = None,
) -> list[JobView]:
    """Returns the views of jobs in the order of their rows.

    Args:
        session: A session.
        rows: Jobs.
        with_places: Whether queued jobs get their place, for which the order of their pools' queues
            is computed. Events omit the place, since each event would cost as much as a whole list.
        known_places: Places by job ID, where the caller has computed them for the pools of all
            `rows`.
    """
    if not rows:
        return []
    ids = [row.id for row in rows]
    runs = await job_rows.load_run_seeds(session, ids)
    workers = await job_rows.load_workers(session, ids)
    names = await load_login_names(session, {row.created_by for row in rows})
    slugs = await access_rows.load_project_slugs(session, {row.project_id for row in rows})
    queued = [row for row in rows if row.state == JobState.QUEUED]
    places = known_places or {}
    if with_places and known_places is None:
        places = await queue_facts.find_places(session, {row.pool for row in queued})
    sentences = await _sentences(session, queued, places if with_places else None)
    estimates = await start_estimates.load_estimates(session, queued)
    backlogs = await attempt_rows.load_backlogs_by_job(session, ids)
    before = await dependency_rows.list_for_jobs(session, ids)
    return [
        build_view(
            JobView,
            row,
            run_ids=list(runs[row.id]),
            seeds=list(runs[row.id].values()),
            after=[one.after_id for one in before.get(row.id, ())],
            on=before[row.id][0].condition if row.id in before else dependency_rows.SUCCESS,
            attempts=row.attempt,
            worker_id=workers.get(row.id),
            created_by=names[row.created_by],
            project=slugs[row.project_id],
            position=place.number if (place := places.get(row.id)) else None,
            estimate=estimates.get(row.id),
            waiting=sentences.get(row.id),
            not_uploaded=build_backlog_view(backlogs.get(row.id)),
        )
        for row in rows
    ]


async def _sentences(
    session: Session, queued: Sequence[JobRow], places: Mapping[str, QueuePlace] | None
) -> dict[str, str]:
    """Returns, by job ID, why queued jobs wait; without `places`, jobs ahead are not mentioned."""
    if not queued:
        return {}
    sentences = {}
    for job_id, (waiting, facts) in (await queue_facts.read_waiting_jobs(session, queued)).items():
        job = waiting
        if places is not None:
            # A job without a place stands behind the last one that has one.
            place = places.get(job_id)
            ahead = queue_facts.MAX_PLACES if place is None else place.ahead
            job = replace(waiting, ahead=ahead, ahead_is_cut=place is None)
        sentences[job_id] = explain(job, facts).sentence
    return sentences


async def build_attempt_views(session: Session, rows: Sequence[AttemptRow]) -> list[AttemptView]:
    """Returns the views of attempts in the order of their rows."""
    if not rows:
        return []
    carried = await attempt_rows.load_runs(session, [row.id for row in rows])
    names = await worker_rows.load_names(session, {row.worker_id for row in rows})
    return [build_attempt_view(row, carried[row.id], names[row.worker_id]) for row in rows]


def build_attempt_view(
    row: AttemptRow, carried: Sequence[AttemptRunRow], worker_name: str
) -> AttemptView:
    """Returns the view of an attempt, given the runs that it carries."""
    return build_view(
        AttemptView,
        row,
        worker_name=worker_name,
        slots=[row.slot, *(row.further_slots or ())],
        other_code=(row.provenance or {}).get("other_code"),
        simulator=read_member(row.provenance, "simulator", Simulator),
        fences={run.run_id: run.fence for run in carried},
        resumed_from={run.run_id: run.snapshot_id if run.training else None for run in carried},
    )


def read_member(provenance: Mapping[str, Any] | None, name: str, words: Any) -> Any:
    """Returns a member of a report, which is as the worker sent it, if it is one of some words.

    Args:
        provenance: That of the report; `None` without one.
        name: Name of the member.
        words: A `Literal`.
    """
    member = (provenance or {}).get(name)
    return member if member in get_args(words) else None
