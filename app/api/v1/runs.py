"""Runs: list, read, provenance, snapshots, evaluations, and new jobs on them."""

from typing import Annotated

from fastapi import Depends, Query, Response

from app.api.auth import Controller, LimitedToProject, Reader, Submitter
from app.api.deps import DatabaseDep, ReadSession, WriteSession
from app.api.expensive_reads import ExpensiveRead
from app.api.idempotency import OnceDep, answer
from app.api.list_selection import Filter, GroupSelection, Selected, read_group_selection
from app.api.paging import OF_LISTS, declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.domain.paging import PageRequest
from app.services.curves import health
from app.services.idempotency import Answer
from app.services.jobs import job_creation, retries, run_batches
from app.services.lists import run_groups, run_keys
from app.services.runs import evaluations, runs
from app.services.snapshots import snapshots
from palestra.contract.health import HealthView
from palestra.contract.job_options import JobRequest, RetryRequest
from palestra.contract.list_order import MAX_SORT_KEYS
from palestra.contract.names import EvaluationSource
from palestra.contract.resources import (
    EvaluationView,
    JobView,
    ProvenanceView,
    RunDetail,
    RunView,
    SnapshotView,
)
from palestra.contract.run_batches import RunsActed, RunsAction
from palestra.contract.run_lists import RunGroupView, RunKeysView
from palestra.contract.states import RunState
from palestra.contract.views import Page

router = ResourceRouter(prefix="/runs", tags=["runs"])
limited_router = ResourceRouter(prefix="/runs", tags=["runs"], dependencies=[LimitedToProject])
"""Routes of all projects of the caller, or of the one that the query names."""

RunPage = Annotated[
    PageRequest,
    Depends(
        declare_page_request(
            "-created_at", ("created_at", "seed", "env_step"), OF_LISTS, keys=MAX_SORT_KEYS
        )
    ),
]
GroupPage = Annotated[
    PageRequest, Depends(declare_page_request("-mean", ("mean", "n", "runs", "name")))
]
Retry = Annotated[RetryRequest, Depends(JsonBody(RetryRequest, required=False))]
CreatedPage = Annotated[
    PageRequest, Depends(declare_page_request("-created_at", ("created_at", "env_step")))
]


@limited_router.get(
    "", response_model=Page[RunView], responses={404: {}}, dependencies=[ExpensiveRead]
)
async def list_runs(
    principal: Reader,
    session: ReadSession,
    page: RunPage,
    selected: Selected,
    experiment: Annotated[
        str | None, Query(max_length=128, description="ID of an experiment.")
    ] = None,
    state: RunState | None = None,
) -> Response:
    """Lists the runs of the projects that the caller may read, page by page.

    Summaries of series (`evaluation/mean.best`) follow new points within a few seconds.
    """
    wanted = runs.RunFilter(
        experiment_id=experiment,
        state=state,
        user=selected.user,
        filter=selected.filter,
        columns=selected.columns,
    )
    found = await runs.list_runs(session, principal, wanted, page)
    return Response(found.encode(), media_type="application/json")


@limited_router.get(":keys", dependencies=[ExpensiveRead])
async def list_keys_of_runs(
    principal: Reader,
    session: ReadSession,
    filter: Filter = "",  # noqa: A002 - the name of the parameter
) -> RunKeysView:
    """Returns the keys that filters, orders, columns and groups of the caller's runs may name.

    With a filter the series are those of the runs that it finds. If it finds more than 2,000 runs,
    of which older ones may have other series, they are those of the newest `searched_runs`.
    """
    return await run_keys.list_keys(session, principal, filter)


@limited_router.get(":groups", responses={413: {}}, dependencies=[ExpensiveRead])
async def list_groups_of_runs(
    principal: Reader,
    session: ReadSession,
    page: GroupPage,
    selected: Annotated[GroupSelection, Depends(read_group_selection)],
) -> Page[RunGroupView]:
    """Lists groups of the runs that fit a filter, with the mean of a metric, page by page.

    The runs of a group share the values of the keys `by`, and its `filter` selects them.
    """
    wanted = run_groups.WantedGroups(
        filter=selected.filter, user=selected.user, by=selected.by, metric=selected.metric
    )
    return await run_groups.list_groups(session, principal, wanted, page)


@limited_router.post(":act")
async def act_on_runs(
    principal: Controller,
    body: Annotated[RunsAction, Depends(JsonBody(RunsAction))],
    session: WriteSession,
) -> RunsActed:
    """Pauses, resumes, cancels or retries many runs: those named, or all that fit a filter.

    One request acts on 100 runs at most, or retries 50, and on fewer where they take longer than
    half a second; the next one goes on with `next_after`. With `dry_run` it only counts them. A run
    for which the action is refused does not keep others from it.
    """
    return await run_batches.act(session, principal, body)


@router.get("/{run_id}")
async def get_run(run_id: str, principal: Reader, session: ReadSession) -> RunDetail:
    """Returns a run with its attempts and jobs."""
    return await runs.get(session, principal, run_id)


@router.get("/{run_id}/provenance")
async def get_provenance(run_id: str, principal: Reader, session: ReadSession) -> ProvenanceView:
    """Returns the provenance of a run: that of its submission and that of each attempt."""
    return await runs.read_provenance(session, principal, run_id)


@router.get("/{run_id}/snapshots")
async def list_snapshots(
    run_id: str, principal: Reader, session: ReadSession, page: CreatedPage
) -> Page[SnapshotView]:
    """Lists a run's snapshots with their files, page by page."""
    return await snapshots.list_for_run(session, principal, run_id, page)


@router.get("/{run_id}/evaluations")
async def list_evaluations(
    run_id: str,
    principal: Reader,
    session: ReadSession,
    page: CreatedPage,
    superseded: bool = False,
    source: EvaluationSource | None = None,
) -> Page[EvaluationView]:
    """Lists a run's evaluations, of one source or of all; superseded ones only on request."""
    return await evaluations.list_for_run(
        session, principal, run_id, page, superseded=superseded, source=source
    )


@router.get("/{run_id}/health")
async def read_health(run_id: str, principal: Reader, database: DatabaseDep) -> HealthView:
    """Returns what is wrong with a run's training by its curves, each with number and remedy."""
    return await health.judge(database, principal, run_id)


@router.post("/{run_id}:retry", status_code=201, response_model=JobView, responses={409: {}})
async def retry_run(
    run_id: str, principal: Controller, body: Retry, session: WriteSession, once: OnceDep
) -> Response:
    """Queues another training of a failed or cancelled run.

    The training starts from the run's newest snapshot, or from the beginning.
    """

    async def change() -> Answer:
        view = await retries.retry(session, principal, run_id, body)
        return answer(view, 201, f"/api/v1/jobs/{view.id}")

    async def project() -> str:
        return (await retries.find_run(session, principal, run_id)).project_id

    return await once(change, project)


@router.post("/{run_id}/jobs", status_code=201, response_model=JobView, responses={409: {}})
async def submit_job(
    run_id: str,
    principal: Submitter,
    body: Annotated[JobRequest, Depends(JsonBody(JobRequest))],
    session: WriteSession,
    once: OnceDep,
) -> Response:
    """Queues a schedule on a run."""

    async def change() -> Answer:
        view = await job_creation.submit(session, principal, run_id, body)
        return answer(view, 201, f"/api/v1/jobs/{view.id}")

    async def project() -> str:
        return (await job_creation.find_run(session, principal, run_id, body.schedule)).project_id

    return await once(change, project)
