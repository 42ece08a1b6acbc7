"""Experiments: read, changed, archived."""

from app.db.engine import QUEUE, Session, announce
from app.db.models.experiments import ExperimentRow
from app.db.repositories import experiments as rows
from app.db.repositories import jobs as job_rows
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.jobs import job_state
from app.services.views.experiments import build_experiment_views, read_definition
from palestra.contract import advice
from palestra.contract.job_changes import ExperimentChange
from palestra.contract.job_options import JobOptions
from palestra.contract.resources import ExperimentDetail


def set_max_running(
    session: Session, principal: Principal, experiment: ExperimentRow, max_running: int | None
) -> None:
    """Sets how many jobs of an experiment run at the same time."""
    rows.set_max_running(experiment, max_running)
    record(session, principal, experiment, "experiment.change", max_running=max_running)
    announce(session, QUEUE)


async def get(session: Session, principal: Principal, experiment_id: str) -> ExperimentDetail:
    """Returns an experiment.

    Raises:
        NotFoundError: If the project has no experiment with that ID.
    """
    return await _detail(session, await _find(session, principal, experiment_id))


async def archive(
    session: Session, principal: Principal, experiment_id: str, *, archived: bool = True
) -> ExperimentDetail:
    """Archives an experiment, which hides it from lists, or restores it.

    Nothing is deleted, and doing it twice changes nothing.

    Raises:
        NotFoundError: If the project has no experiment with that ID.
        ConflictError: While one of its jobs has not ended.
    """
    experiment = await _find(session, principal, experiment_id)
    if not await rows.lock_against_moves(session, experiment.project_id, experiment.id):
        raise NotFoundError("experiment")
    rights.require_control(principal, experiment.project_id, experiment.created_by)
    if (experiment.archived_at is not None) is not archived:
        busy = await job_rows.count_unfinished(session, experiment.project_id, experiment.id)
        if archived and busy:
            raise ConflictError(
                "experiment_active", f"{busy} of its jobs have not ended. Cancel them first."
            )
        await rows.set_archived(session, experiment, archived=archived)
        record(
            session,
            principal,
            experiment,
            "experiment.archive" if archived else "experiment.restore",
        )
        await job_state.append_experiment_event(session, experiment)
    return await _detail(session, experiment)


async def change(
    session: Session, principal: Principal, experiment_id: str, request: ExperimentChange
) -> ExperimentDetail:
    """Changes how many jobs of an experiment run at the same time; running jobs go on.

    Raises:
        NotFoundError: If the project has no experiment with that ID.
        ForbiddenError: If the caller may not act on it.
    """
    experiment = await _find(session, principal, experiment_id)
    if not await rows.lock_against_moves(session, experiment.project_id, experiment.id):
        raise NotFoundError("experiment")
    rights.require_control(principal, experiment.project_id, experiment.created_by)
    if "max_running" in request.model_fields_set and request.max_running != experiment.max_running:
        set_max_running(session, principal, experiment, request.max_running)
        await job_state.append_experiment_event(session, experiment)
    return await _detail(session, experiment)


async def _find(session: Session, principal: Principal, experiment_id: str) -> ExperimentRow:
    found = await rows.list_by_public_id(session, principal.project_ids, experiment_id)
    if not found:
        raise NotFoundError("experiment")
    if len(found) > 1:
        raise ConflictError(
            "ambiguous_experiment",
            "Several of your projects have an experiment of this ID. Name the project: "
            f"`--project SLUG`, or /api/v1/experiments/{found[0].id}?project=SLUG.",
        )
    return found[0]


async def _detail(session: Session, experiment: ExperimentRow) -> ExperimentDetail:
    (view,) = await build_experiment_views(session, [experiment])
    definition = read_definition(experiment)
    return ExperimentDetail(
        **dict(view),
        definition=definition,
        warnings=list(advice.list_warnings(definition, JobOptions())),
    )


def record(
    session: Session,
    principal: Principal,
    experiment: ExperimentRow,
    action: str,
    **data: object,
) -> None:
    """Records an action on an experiment in the audit log."""
    audit_log.record(
        session,
        action,
        experiment.id,
        project_id=experiment.project_id,
        actor=describe_actor(principal),
        data={"definition_hash": experiment.definition_hash, **data},
    )
