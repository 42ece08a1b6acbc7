"""Runs: lists, views and provenance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.prepared import carry_out
from app.db.repositories import experiments as rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import run_lists
from app.db.repositories import workers as worker_rows
from app.db.repositories.keyset_pages import read_place
from app.db.repositories.run_lists import WantedPage
from app.domain.errors import NotFoundError
from app.domain.list_filters import RunFilter
from app.domain.paging import PageRequest, read_cursor_of_keys
from app.domain.principal import Principal
from app.services.lists import columns, requests
from app.services.views import pages
from app.services.views.experiments import read_definition
from app.services.views.jobs import build_attempt_views, build_job_views
from app.services.views.runs import (
    WRITING,
    RunDocument,
    build_documents,
    plan_documents,
    run_views,
)
from palestra.contract.resources import ProvenanceView, RunDetail

__all__ = ["PageRequest", "RunFilter", "RunPage", "find", "get", "list_runs", "read_provenance"]


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of runs: a `Page[RunView]` that is not encoded yet."""

    items: Sequence[RunDocument]
    next_cursor: str | None

    def encode(self) -> bytes:
        """Returns the page as JSON."""
        content = {"items": self.items, "next_cursor": self.next_cursor}
        return orjson.dumps(content, option=WRITING)


async def list_runs(
    session: Session, principal: Principal, wanted: RunFilter, request: PageRequest
) -> RunPage:
    """Returns a page of the runs of the caller's projects, in the order of any key.

    Raises:
        NotFoundError: If the filter names an experiment that the projects do not have.
        InvalidError: If filter, key, columns or page are not valid.
    """
    terms = [*wanted.list_terms(), *requests.read_terms(wanted.filter, "runs", principal)]
    if wanted.experiment_id is not None and not await rows.list_by_public_id(
        session, principal.project_ids, wanted.experiment_id
    ):
        raise NotFoundError("experiment")
    found = await requests.resolve(
        session, principal, "runs", terms=terms, sort=request.sort, columns=wanted.columns
    )
    types = [await run_lists.find_key_type(session, one, found.scope) for one in found.orders]
    place = read_place(read_cursor_of_keys(request, len(found.orders)), types)
    page = WantedPage(terms, found.orders, found.scope, place, request.limit)
    keys = await run_lists.list_page(session, page)
    plan = plan_documents([run_id for run_id, _ in keys[: request.limit]], principal.project_ids)
    listed = await carry_out(session, plan)
    items = build_documents(listed)
    of_runs = [(row.project_id, row.experiment_id) for row in listed.rows]
    await columns.add_to_runs(session, items, of_runs, found)
    return RunPage(items, pages.find_next(keys, request))


async def find(session: Session, principal: Principal, run_id: str) -> RunRow:
    """Returns the row of a run of the project.

    Raises:
        NotFoundError: If the project has no run with that ID.
    """
    run = await rows.find_run(session, principal.project_ids, run_id)
    if run is None:
        raise NotFoundError("run")
    return run


async def get(session: Session, principal: Principal, run_id: str) -> RunDetail:
    """Returns a run with its attempts, its jobs and its definition.

    Raises:
        NotFoundError: If the project has no run with that ID.
    """
    run = await find(session, principal, run_id)
    (view,) = await run_views(session, [run])
    attempts = await build_attempt_views(session, await rows.list_attempts_for_run(session, run.id))
    jobs = await build_job_views(session, await job_rows.list_for_run(session, run.id))
    experiment = await rows.find(session, run.project_id, run.experiment_id)
    assert experiment is not None
    return RunDetail(
        **dict(view), attempts=attempts, jobs=jobs, definition=read_definition(experiment)
    )


async def read_provenance(session: Session, principal: Principal, run_id: str) -> ProvenanceView:
    """Returns the provenance of a run: that of its submission, and that of each attempt.

    Raises:
        NotFoundError: If the project has no run with that ID.
    """
    run = await find(session, principal, run_id)
    submission = await rows.find_submission(session, run.submission_id)
    assert submission is not None
    submitted = {**submission.provenance, "submitted_at": submission.created_at.isoformat()}
    attempts = await _attempts(session, run)
    return ProvenanceView(
        run_id=run.id,
        experiment_id=run.experiment_id,
        seed=run.seed,
        submission=submitted,
        attempts=attempts,
    )


async def _attempts(session: Session, run: RunRow) -> list[dict[str, Any]]:
    attempts = await rows.list_attempts_for_run(session, run.id)
    workers = {
        worker.id: worker
        for worker in await worker_rows.list_by_ids(
            session, {attempt.worker_id for attempt in attempts}
        )
    }
    return [
        {
            "attempt_id": attempt.id,
            "number": attempt.number,
            "started_at": attempt.started_at.isoformat(),
            "ended_at": None if attempt.ended_at is None else attempt.ended_at.isoformat(),
            "worker": {
                "name": workers[attempt.worker_id].name,
                "host": workers[attempt.worker_id].host,
            },
            **attempt.ran_with,
            "report": attempt.provenance,
        }
        for attempt in attempts
    ]
