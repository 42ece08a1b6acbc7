"""Moves experiments between projects."""

import asyncio
from collections.abc import Sequence

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.projects import ProjectRow
from app.db.repositories import experiment_moves as rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import projects as project_rows
from app.db.repositories.experiment_moves import MovedBlob
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Membership, Principal
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.artifacts.blob_store import BlobStore
from app.services.audit import audit_log
from app.services.events import event_log
from app.services.experiments import experiments
from app.services.jobs import job_state
from app.services.projects import storage_limits
from palestra.contract.moves import ExperimentMoved
from palestra.contract.permissions import Permission
from palestra.contract.resources import ExperimentDetail


async def move(
    session: Session,
    principal: Principal,
    store: BlobStore,
    source_slug: str,
    experiment_id: str,
    target_slug: str,
) -> ExperimentDetail:
    """Moves an experiment with its runs, jobs, curves and files to another project.

    The caller must be a maintainer of both. The usage of past attempts stays with the project in
    which they ran.

    Raises:
        NotFoundError: If the caller sees no such project, or the project has no such experiment.
        ForbiddenError: `missing_permission` in one of the projects.
        InvalidError: `same_project`; `no_such_project` if the caller does not see the target.
        ConflictError: `experiment_active` while jobs have not ended; `id_taken` if the target has
            an experiment of that ID; `project_archived` or `storage_limit_reached` of the target.
    """
    source, target = _projects(principal, source_slug, target_slug)
    into = await _lock_projects(session, source, target)
    experiment = await rows.lock(session, source.project_id, experiment_id)
    if experiment is None:
        raise NotFoundError("experiment")
    _check_open(into)
    busy = await job_rows.count_unfinished(session, source.project_id, experiment.id)
    if busy:
        raise ConflictError(
            "experiment_active",
            f"{busy} of its jobs have not ended. Wait until they end, or cancel them.",
        )
    if not await rows.insert_copy(session, experiment, target.project_id):
        raise ConflictError(
            "id_taken",
            "The other project has this experiment already. Submit its missing seeds there.",
            pointer="/to",
        )
    await _move_blobs(session, store, experiment, into)
    moved = await rows.move_rows(session, experiment, target.project_id)
    _record(session, principal, moved.id, source, target)
    await job_state.append_experiment_event(session, moved)
    return await experiments.get(session, rights.limit_to_project(principal, target.slug), moved.id)


def _projects(
    principal: Principal, source_slug: str, target_slug: str
) -> tuple[Membership, Membership]:
    (source,) = rights.limit_to_project(principal, source_slug).memberships
    target = next((one for one in principal.memberships if one.slug == target_slug), None)
    if target is None:
        raise _no_such_project()
    if target.project_id == source.project_id:
        raise InvalidError(
            "same_project", "The experiment is in this project already.", pointer="/to"
        )
    for project in (source, target):
        rights.require(principal, Permission.PROJECT_SETTINGS, project.project_id)
    return source, target


def _no_such_project() -> InvalidError:
    return InvalidError(
        "no_such_project",
        "There is no such project, or you are no member of it. `palestra projects list` names "
        "yours.",
        pointer="/to",
    )


async def _lock_projects(session: Session, source: Membership, target: Membership) -> ProjectRow:
    """Returns the target as it is now, locked like the source."""
    locked = await project_rows.lock_for_storage(session, {source.project_id, target.project_id})
    found = locked.get(target.project_id)
    if found is None or found.deleted_at is not None:
        raise _no_such_project()
    return found


def _check_open(target: ProjectRow) -> None:
    if target.archived_at is not None:
        raise ConflictError(
            "project_archived",
            "The other project is archived: nothing can be moved to it. A maintainer can restore "
            "it.",
            pointer="/to",
        )


async def _move_blobs(
    session: Session, store: BlobStore, experiment: ExperimentRow, target: ProjectRow
) -> None:
    blobs = await rows.lock_blobs(session, experiment)
    stored = await rows.filter_stored(session, target.id, blobs)
    missing = [blob for blob in blobs if (blob.sha256, blob.size) not in stored]
    storage_limits.check_move(target, sum(blob.size for blob in missing))
    shared = [blob for blob in missing if blob.is_shared]
    unshared = [blob for blob in missing if not blob.is_shared]
    await rows.move_blobs(session, unshared, experiment.project_id, target.id)
    await rows.add_copies(session, await _copy(store, shared), target.id)
    await rows.refer_to_blobs_of(session, experiment, target.id)


async def _copy(store: BlobStore, blobs: Sequence[MovedBlob]) -> dict[str, MovedBlob]:
    """Copies files; the compactor deletes the copies if the transaction fails."""
    copies = await asyncio.to_thread(store.copy, [blob.id for blob in blobs])
    return dict(zip(copies, blobs, strict=True))


def _record(
    session: Session,
    principal: Principal,
    experiment_id: str,
    source: Membership,
    target: Membership,
) -> None:
    """Appends an audit entry and an event to each of the two projects.

    The event does not name the other project, which not all of its readers may see.
    """
    directions = (
        (source, "experiment.move_out", {"to": target.slug}),
        (target, "experiment.move_in", {"from": source.slug}),
    )
    for project, action, data in directions:
        audit_log.record(
            session,
            action,
            experiment_id,
            project_id=project.project_id,
            actor=describe_actor(principal),
            data=data,
        )
        event_log.record(
            session,
            "moved",
            ExperimentMoved(id=experiment_id, project=project.slug, has_left=project is source),
            project_id=project.project_id,
            experiment_id=experiment_id,
        )
