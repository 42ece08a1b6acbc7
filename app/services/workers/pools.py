"""Pools: listed, made, changed, paused, deleted; and the projects that they admit."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.db.engine import ACCESS, BROKER_USERS, QUEUE, Session, announce
from app.db.models.pools import PoolRow, ProjectPoolRow
from app.db.models.projects import ProjectRow
from app.db.repositories import job_queue
from app.db.repositories import pools as rows
from app.db.repositories import projects as project_rows
from app.db.repositories import workers as worker_rows
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services import pools
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.events import event_log
from app.services.queue.queue_facts import pool_facts
from app.services.views.columns import build_view
from palestra.contract.names import new_id
from palestra.contract.permissions import Permission
from palestra.contract.pools import (
    PoolAdmission,
    PoolChange,
    PoolProjectView,
    PoolRequest,
    PoolView,
)
from palestra.contract.sizes import format_count
from palestra.contract.views import Page

_CONSOLE: Final = "daemon:bootstrap"
_WALL_TIMES: Final = ("default_wall_seconds", "max_wall_seconds")


async def list_pools(session: Session, principal: Principal) -> Page[PoolView]:
    """Returns the pools that the caller sees, by name."""
    found = await rows.list_by_names(session, await pools.list_visible_names(session, principal))
    return Page(items=await _views(session, principal, found), next_cursor=None)


async def get(session: Session, principal: Principal, name: str) -> PoolView:
    """Returns a pool that the caller sees.

    Raises:
        NotFoundError: If it does not exist for the caller.
    """
    return await _view(session, principal, await find_visible(session, principal, name))


async def find_visible(session: Session, principal: Principal, name: str) -> PoolRow:
    """Returns the row of a pool that the caller sees.

    Raises:
        NotFoundError: If it does not exist for the caller.
    """
    visible = await pools.list_visible_names(session, principal)
    if visible is not None and name not in visible:
        raise NotFoundError("pool")
    return await find(session, name)


async def create(session: Session, principal: Principal, request: PoolRequest) -> PoolView:
    """Creates a pool that admits the requested projects.

    Raises:
        ConflictError: `pool_name_taken`.
        InvalidError: `wall_times_crossed`; `no_such_project` for an unknown project.
    """
    rights.require_pool_management(principal)
    _check_wall_times(request.default_wall_seconds, request.max_wall_seconds)
    projects = [
        await _project_named(session, slug, f"/projects/{index}")
        for index, slug in enumerate(request.projects)
    ]
    values = request.model_dump(exclude={"projects"})
    if not await rows.insert(session, {**values, "id": new_id("pol")}):
        raise ConflictError(
            "pool_name_taken", "Another pool has this name. Choose another.", pointer="/name"
        )
    pool = await find(session, request.name)
    _record(session, principal, "pool.create", pool, **values)
    for project in projects:
        await _admit(session, principal, pool, project, None)
    _announce(session, pool)
    return await _view(session, principal, pool)


async def change(
    session: Session, principal: Principal, name: str, request: PoolChange
) -> PoolView:
    """Describes a pool, or changes its wall times or whether it shows names.

    Jobs that were queued before keep their limits.

    Raises:
        NotFoundError: If there is no such pool.
        InvalidError: `wall_times_crossed`.
    """
    rights.require_pool_management(principal)
    pool = await find(session, name, lock=True)
    wanted = {
        member: getattr(request, member)
        for member in request.model_fields_set
        if member in _WALL_TIMES or getattr(request, member) is not None
    }
    changed = {member: new for member, new in wanted.items() if new != getattr(pool, member)}
    present = {member: changed.get(member, getattr(pool, member)) for member in _WALL_TIMES}
    _check_wall_times(*(present[member] for member in _WALL_TIMES))
    if changed:
        await rows.change(session, pool, changed)
        _record(session, principal, "pool.update", pool, **changed)
        _announce(session, pool)
    return await _view(session, principal, pool)


def _check_wall_times(default: int | None, longest: int | None) -> None:
    if default is not None and longest is not None and default > longest:
        raise InvalidError(
            "wall_times_crossed",
            f"The default of {default} s exceeds the maximum of {longest} s. Lower the default, or "
            "raise the maximum.",
            pointer="/default_wall_seconds",
        )


async def pause(session: Session, principal: Principal, name: str, reason: str) -> PoolView:
    """Pauses a pool: none of its queued jobs starts. A second pause changes the reason.

    Raises:
        NotFoundError: If there is no such pool.
    """
    rights.require_pool_management(principal)
    pool = await find(session, name, lock=True)
    if pool.paused_at is None or pool.pause_reason != reason:
        await rows.pause(session, pool, reason)
        _record(session, principal, "pool.pause", pool, reason=reason)
        _announce(session, pool)
    return await _view(session, principal, pool)


async def resume(session: Session, principal: Principal, name: str) -> PoolView:
    """Ends the pause of a pool. Doing it twice changes nothing.

    Raises:
        NotFoundError: If there is no such pool.
    """
    rights.require_pool_management(principal)
    pool = await find(session, name, lock=True)
    if pool.paused_at is not None:
        await rows.change(session, pool, {"paused_at": None, "pause_reason": ""})
        _record(session, principal, "pool.resume", pool)
        _announce(session, pool)
    return await _view(session, principal, pool)


async def delete(session: Session, principal: Principal, name: str) -> None:
    """Deletes a pool with its tokens; the secrets of its workers, which are offline, are revoked.

    Raises:
        NotFoundError: If there is no such pool.
        ConflictError: `pool_in_use` while it has workers that are alive, or jobs that have not
            ended.
    """
    rights.require_pool_management(principal)
    pool = await find(session, name, lock=True)
    alive = await worker_rows.list_alive_names(session, pool.name)
    jobs = await rows.count_unfinished_jobs(session, pool.name)
    if alive or jobs:
        raise ConflictError(
            "pool_in_use",
            f"The pool has {format_count(len(alive), 'live worker')} and "
            f"{format_count(jobs, 'job')} not ended yet. Stop the workers and cancel the jobs "
            "first, or pause the pool instead.",
            workers=len(alive),
            jobs=jobs,
        )
    _record(session, principal, "pool.delete", pool)
    _announce(session, pool, is_deleted=True)
    await rows.delete_pool(session, pool)
    announce(session, BROKER_USERS)


async def admit(
    session: Session, principal: Principal, name: str, slug: str, request: PoolAdmission
) -> PoolView:
    """Admits a project to a pool, or changes its share.

    Raises:
        NotFoundError: If there is no such pool or project.
    """
    rights.require_pool_management(principal)
    pool = await find(session, name, lock=True)
    await _admit(session, principal, pool, await _project(session, slug), request.share)
    return await _view(session, principal, pool)


async def remove(session: Session, principal: Principal, name: str, slug: str) -> None:
    """Ends the admission of a project: its queued jobs wait, its running ones go on.

    Raises:
        NotFoundError: If there is no such pool or project, or the pool does not admit it.
    """
    rights.require_pool_management(principal)
    pool = await find(session, name, lock=True)
    project = await _project(session, slug)
    if not await rows.remove(session, pool.id, project.id):
        raise NotFoundError("project of this pool")
    _record(session, principal, "pool.remove", pool, of=project)
    _announce(session, pool)


async def admit_new_project(
    session: Session, principal: Principal, project_id: str, wanted: Sequence[str] | None
) -> None:
    """Admits a new project to the named pools, or to the pool `default` if none are named.

    Raises:
        InvalidError: `unknown_pool` if there is no such pool.
    """
    if wanted is None:
        await pools.admit_to_default(session, project_id)
        return
    project = await project_rows.load_by_id(session, project_id)
    for index, name in enumerate(wanted):
        pool = await rows.find_by_name(session, name, lock=True)
        if pool is None:
            known = ", ".join(await rows.list_names(session)) or "none"
            raise InvalidError(
                "unknown_pool",
                f"There is no pool {name}. The pools of the server are: {known}.",
                pointer=f"/pools/{index}",
            )
        await _admit(session, principal, pool, project, None)


async def provide(
    session: Session, name: str, project_id: str, *, worker: str | None = None
) -> None:
    """Makes a pool if it is missing, and admits a project to it, for a server on one machine.

    Args:
        session: A writing session.
        name: Name of the pool.
        project_id: The project.
        worker: Name of a worker to move to the pool.
    """
    if await rows.insert(session, {"id": new_id("pol"), "name": name}):
        made = await find(session, name)
        audit_log.record(
            session, "pool.create", made.id, project_id=None, actor=_CONSOLE, data={"pool": name}
        )
    pool = await find(session, name)
    await rows.admit(session, pool.id, project_id)
    if worker is not None:
        await worker_rows.move(session, worker, name)


async def find(session: Session, name: str, *, lock: bool = False) -> PoolRow:
    """Returns a pool, locked until the transaction ends if asked.

    Raises:
        NotFoundError: If there is none of that name.
    """
    pool = await rows.find_by_name(session, name, lock=lock)
    if pool is None:
        raise NotFoundError("pool")
    return pool


async def _admit(
    session: Session,
    principal: Principal,
    pool: PoolRow,
    project: ProjectRow,
    share: float | None,
) -> None:
    if await rows.admit(session, pool.id, project.id, share):
        given = {} if share is None else {"share": share}
        _record(session, principal, "pool.admit", pool, of=project, **given)
        _announce(session, pool)


async def _project(session: Session, slug: str) -> ProjectRow:
    project = await project_rows.find_by_slug(session, slug)
    if project is None:
        raise NotFoundError("project")
    return project


async def _project_named(session: Session, slug: str, pointer: str) -> ProjectRow:
    project = await project_rows.find_by_slug(session, slug)
    if project is None:
        raise InvalidError(
            "no_such_project",
            f"There is no project {slug}. `palestra projects list` names them.",
            pointer=pointer,
        )
    return project


def _record(
    session: Session,
    principal: Principal,
    action: str,
    pool: PoolRow,
    *,
    of: ProjectRow | None = None,
    **data: Any,
) -> None:
    """Appends an audit entry; maintainers of the project `of` find it in the project's log."""
    admitted = {} if of is None else {"project": of.slug}
    audit_log.record(
        session,
        action,
        pool.id,
        project_id=None if of is None else of.id,
        actor=describe_actor(principal),
        data={"pool": pool.name, **admitted, **data},
    )


def _announce(session: Session, pool: PoolRow, *, is_deleted: bool = False) -> None:
    """Notifies the dispatcher, the streams and all users who see a pool of its change."""
    announce(session, QUEUE)
    announce(session, ACCESS)
    content: Mapping[str, Any] = {"pool": pool.name, "deleted": is_deleted}
    event_log.record(session, "pool", content, project_id=None)


async def _view(session: Session, principal: Principal, pool: PoolRow) -> PoolView:
    (view,) = await _views(session, principal, [pool])
    return view


async def _views(
    session: Session, principal: Principal, found: Sequence[PoolRow]
) -> list[PoolView]:
    names = [pool.name for pool in found]
    facts = await pool_facts(session, names)
    own = await job_queue.count_by_pool(session, principal.project_ids)
    manages = principal.permits(Permission.SERVER_POOLS)
    everybody = await job_queue.count_by_pool(session, None) if manages else None
    admitted: dict[str, list[PoolProjectView]] = {}
    for admission, project in await rows.list_admissions(session, [pool.id for pool in found]):
        if manages or project.id in principal.project_ids:
            admitted.setdefault(admission.pool_id, []).append(_admitted(admission, project))
    return [
        build_view(
            PoolView,
            pool,
            projects=admitted.get(pool.id, []),
            workers=facts[pool.name].workers,
            registered_workers=facts[pool.name].registered,
            slots=facts[pool.name].slots,
            free_slots=facts[pool.name].free_slots,
            queued=own.get(pool.name, (0, 0))[0],
            running=own.get(pool.name, (0, 0))[1],
            all_queued=None if everybody is None else everybody.get(pool.name, (0, 0))[0],
            all_running=None if everybody is None else everybody.get(pool.name, (0, 0))[1],
        )
        for pool in found
    ]


def _admitted(admission: ProjectPoolRow, project: ProjectRow) -> PoolProjectView:
    return PoolProjectView(
        project=project.slug,
        name=project.name,
        share=admission.share,
        since=admission.created_at,
    )
