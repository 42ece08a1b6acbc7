"""Experiments: submit, preview a submission, list, read, change, archive, unarchive."""

from typing import Annotated

from fastapi import Depends, Query, Response

from app.api.auth import Controller, LimitedToProject, Reader, Submitter
from app.api.deps import DatabaseDep, ReadSession, WriteSession
from app.api.expensive_reads import ExpensiveRead
from app.api.idempotency import OnceDep, answer
from app.api.list_selection import Selected
from app.api.paging import OF_LISTS, declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import LARGE, JsonBody
from app.domain.paging import PageRequest
from app.services.access import rights
from app.services.experiments import (
    experiments,
    submission,
    submission_plan,
    submission_preview,
)
from app.services.idempotency import Answer
from app.services.lists import experiment_list
from app.services.lists.experiment_list import ExperimentFilter
from app.services.runs import runs
from app.services.runs.runs import RunFilter
from palestra.contract.job_changes import ExperimentChange
from palestra.contract.job_options import Submission
from palestra.contract.list_order import MAX_SORT_KEYS
from palestra.contract.queue import SubmissionPreview
from palestra.contract.resources import (
    ExperimentDetail,
    ExperimentView,
    RunView,
    SubmittedExperiment,
)
from palestra.contract.states import RunState
from palestra.contract.upgrade import upgrade_submission
from palestra.contract.views import Page

limited_router = ResourceRouter(
    prefix="/experiments", tags=["experiments"], dependencies=[LimitedToProject]
)
"""Routes of all projects of the caller, or of the one that the query names."""

Text = Annotated[str | None, Query(max_length=128)]
RunPage = Annotated[
    PageRequest,
    Depends(
        declare_page_request(
            "seed", ("created_at", "seed", "env_step"), OF_LISTS, keys=MAX_SORT_KEYS
        )
    ),
]
ExperimentPage = Annotated[
    PageRequest,
    Depends(
        declare_page_request("-created_at", ("created_at", "name"), OF_LISTS, keys=MAX_SORT_KEYS)
    ),
]


async def read_experiment_filter(
    selected: Selected,
    state: RunState | None = None,
    agent: Text = None,
    env: Text = None,
    text: Annotated[
        str | None, Query(max_length=128, description="Part of the name or of the ID.")
    ] = None,
    archived: bool = False,
) -> ExperimentFilter:
    """Reads which experiments to list."""
    return ExperimentFilter(
        state=state,
        agent=agent,
        env=env,
        text=text,
        archived=archived,
        user=selected.user,
        filter=selected.filter,
        columns=selected.columns,
    )


Wanted = Annotated[ExperimentFilter, Depends(read_experiment_filter)]


@limited_router.post(
    "",
    status_code=201,
    response_model=SubmittedExperiment,
    responses={200: {"model": SubmittedExperiment}, 409: {}},
)
async def submit_experiment(
    principal: Submitter,
    body: Annotated[
        Submission, Depends(JsonBody(Submission, limit=LARGE, upgraded=upgrade_submission))
    ],
    session: WriteSession,
    once: OnceDep,
) -> Response:
    """Submits a definition: 201 for a new experiment, 200 for an existing one.

    Seeds that the existing experiment lacks are added.

    A definition of an older `schema_version` is brought up to the present one; the
    experiment stays the same.
    """

    async def change() -> Answer:
        view, created = await submission.submit(session, principal, body)
        query = f"?project={view.project}" if principal.is_within_project else ""
        return answer(view, 201 if created else 200, f"/api/v1/experiments/{view.id}{query}")

    async def project() -> str:
        return rights.choose_project_to_submit_to(principal)

    return await once(change, project)


@limited_router.post(":preview", responses={409: {}})
async def preview_submission(
    principal: Submitter,
    body: Annotated[
        Submission, Depends(JsonBody(Submission, limit=LARGE, upgraded=upgrade_submission))
    ],
    database: DatabaseDep,
) -> SubmissionPreview:
    """Returns the jobs that a submission would queue, and when they would start; writes nothing.

    Takes the body of a submission, and refuses it like a submission.
    """
    async with database.trial() as session:
        plan = await submission_plan.plan(session, principal, body)
    async with database.read() as session:
        return await submission_preview.preview(session, plan)


@limited_router.get("", dependencies=[ExpensiveRead])
async def list_experiments(
    principal: Reader, session: ReadSession, page: ExperimentPage, wanted: Wanted
) -> Page[ExperimentView]:
    """Lists the experiments of the projects that the caller may read, page by page."""
    return await experiment_list.list_experiments(session, principal, wanted, page)


@limited_router.get("/{experiment_id}")
async def get_experiment(
    experiment_id: str, principal: Reader, session: ReadSession
) -> ExperimentDetail:
    """Returns an experiment with its definition."""
    return await experiments.get(session, principal, experiment_id)


@limited_router.patch("/{experiment_id}", responses={409: {}})
async def change_experiment(
    experiment_id: str,
    principal: Controller,
    body: Annotated[ExperimentChange, Depends(JsonBody(ExperimentChange))],
    session: WriteSession,
) -> ExperimentDetail:
    """Changes how many jobs of an experiment run at the same time; running jobs go on."""
    return await experiments.change(session, principal, experiment_id, body)


@limited_router.get("/{experiment_id}/runs", response_model=Page[RunView])
async def list_experiment_runs(
    experiment_id: str,
    principal: Reader,
    session: ReadSession,
    page: RunPage,
    selected: Selected,
    state: RunState | None = None,
) -> Response:
    """Lists an experiment's runs with their states and latest scores, page by page."""
    wanted = RunFilter(
        experiment_id=experiment_id,
        state=state,
        user=selected.user,
        filter=selected.filter,
        columns=selected.columns,
    )
    found = await runs.list_runs(session, principal, wanted, page)
    return Response(found.encode(), media_type="application/json")


@limited_router.post("/{experiment_id}:archive", responses={409: {}})
async def archive_experiment(
    experiment_id: str, principal: Controller, session: WriteSession
) -> ExperimentDetail:
    """Hides an experiment from lists; nothing is deleted."""
    return await experiments.archive(session, principal, experiment_id)


@limited_router.post("/{experiment_id}:unarchive")
async def unarchive_experiment(
    experiment_id: str, principal: Controller, session: WriteSession
) -> ExperimentDetail:
    """Restores an archived experiment to lists; a second request changes nothing."""
    return await experiments.archive(session, principal, experiment_id, archived=False)
