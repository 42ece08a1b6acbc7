"""Plans maintenance windows and reservations of pools, and cancels them."""

from collections.abc import Sequence
from datetime import datetime

from app.db import clock
from app.db.engine import QUEUE, Session, announce
from app.db.models.pools import PoolRow, PoolWindowRow
from app.db.repositories import access as access_rows
from app.db.repositories import pool_windows as rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import projects as project_rows
from app.db.repositories import workers as worker_rows
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.events import event_log
from app.services.views.columns import build_view
from app.services.workers import pools
from palestra.contract.names import new_id
from palestra.contract.permissions import Permission
from palestra.contract.pool_windows import PoolWindowRequest, PoolWindowView, WindowKind
from palestra.contract.problems import suggest_nearest
from palestra.contract.views import Page


async def list_windows(session: Session, principal: Principal, pool: str) -> Page[PoolWindowView]:
    """Returns the windows of a pool that have not ended.

    Whom a reservation is for is told to those who may read it, and to administrators.

    Raises:
        NotFoundError: If the pool does not exist for the caller.
    """
    found = await pools.find_visible(session, principal, pool)
    windows = await rows.list_open(session, found.id)
    return Page(items=await _views(session, principal, found, windows), next_cursor=None)


async def plan(
    session: Session, principal: Principal, name: str, request: PoolWindowRequest
) -> PoolWindowView:
    """Plans a maintenance window or a reservation.

    Raises:
        NotFoundError: If there is no such pool.
        InvalidError: `window_reversed`, `window_past`, `holder_needed`, `holder_not_allowed`,
            `unknown_worker`, `project_not_admitted` or `no_such_user`.
        ConflictError: `windows_overlap` with another reservation of a worker.
    """
    rights.require_pool_management(principal)
    pool = await pools.find(session, name, lock=True)
    _check_times(request, await clock.now(session))
    _check_holder(request)
    workers = await _find_workers(session, pool, request.workers)
    project_id = await _find_project(session, pool, request.project)
    user_id = await _find_user(session, request.user)
    await _check_overlap(session, pool, request, frozenset(workers))
    window = await rows.insert(
        session,
        {
            "id": new_id("win"),
            "pool_id": pool.id,
            "kind": request.kind,
            "starts_at": request.start,
            "ends_at": request.end,
            "workers": workers,
            "project_id": project_id,
            "user_id": user_id,
            "reason": request.reason,
            "created_by": principal.user_id,
        },
    )
    _record(session, principal, "pool.plan_window", pool, window)
    (view,) = await _views(session, principal, pool, [window])
    return view


async def cancel(session: Session, principal: Principal, name: str, window_id: str) -> None:
    """Cancels a window, also one that has begun.

    Raises:
        NotFoundError: If there is no such pool or window.
    """
    rights.require_pool_management(principal)
    pool = await pools.find(session, name, lock=True)
    window = await rows.remove(session, pool.id, window_id)
    if window is None:
        raise NotFoundError("window of this pool")
    _record(session, principal, "pool.cancel_window", pool, window)


def _check_times(request: PoolWindowRequest, now: datetime) -> None:
    if request.end <= request.start:
        raise InvalidError(
            "window_reversed",
            f"The window ends at {request.end:%Y-%m-%d %H:%M:%S %Z}, before it begins. Name a "
            "later end.",
            pointer="/end",
        )
    if request.end <= now:
        raise InvalidError(
            "window_past",
            f"The window has ended already: it is {now:%Y-%m-%d %H:%M:%S} UTC. Name a later end.",
            pointer="/end",
        )


def _check_holder(request: PoolWindowRequest) -> None:
    holders = [one for one in (request.project, request.user) if one is not None]
    if request.kind is WindowKind.MAINTENANCE and holders:
        raise InvalidError(
            "holder_not_allowed",
            "In a maintenance window nothing starts, whoever it is from. Leave out `project` and "
            "`user`, or make it a reservation.",
            pointer="/project" if request.project is not None else "/user",
        )
    if request.kind is WindowKind.RESERVATION and len(holders) != 1:
        raise InvalidError(
            "holder_needed",
            "A reservation is for one project or one person: name either `project` or `user`.",
            pointer="/project",
        )


async def _find_workers(session: Session, pool: PoolRow, names: Sequence[str]) -> list[str]:
    """Returns the IDs of the workers of a pool that have some names, sorted."""
    known = {row.name: row.id for row in await worker_rows.list_for_pool(session, pool.name)}
    for index, name in enumerate(names):
        if name not in known:
            raise InvalidError(
                "unknown_worker",
                f"The pool {pool.name} has no worker {name}{suggest_nearest(name, known) or '.'} "
                "`palestra workers` names them.",
                pointer=f"/workers/{index}",
            )
    return sorted({known[name] for name in names})


async def _find_project(session: Session, pool: PoolRow, slug: str | None) -> str | None:
    if slug is None:
        return None
    project = await project_rows.find_by_slug(session, slug)
    if project is None or not await pool_rows.admits(session, pool.id, project.id):
        raise InvalidError(
            "project_not_admitted",
            f"The pool {pool.name} admits no project {slug}. Admit it first: `palestra pools admit "
            f"{pool.name} {slug}`.",
            pointer="/project",
        )
    return project.id


async def _find_user(session: Session, name: str | None) -> str | None:
    if name is None:
        return None
    user = await access_rows.find_user_by_name(session, name)
    if user is None:
        raise InvalidError(
            "no_such_user",
            f"There is no user {name}. `palestra users list` names them.",
            pointer="/user",
        )
    return user.id


async def _check_overlap(
    session: Session, pool: PoolRow, request: PoolWindowRequest, workers: frozenset[str]
) -> None:
    """Refuses a reservation of a worker that another one holds at the same time."""
    if request.kind is not WindowKind.RESERVATION:
        return
    for other in await rows.list_planned(session, [pool.name]):
        if (
            not other.is_maintenance
            and other.start < request.end
            and request.start < other.end
            and other.shares_workers(workers)
        ):
            raise ConflictError(
                "windows_overlap",
                "Another reservation of these workers lasts from "
                f"{other.start:%Y-%m-%d %H:%M} to {other.end:%Y-%m-%d %H:%M} UTC. Choose another "
                "time or other workers, or cancel it first.",
                pointer="/start",
                window=other.id,
            )


def _record(
    session: Session, principal: Principal, action: str, pool: PoolRow, window: PoolWindowRow
) -> None:
    audit_log.record(
        session,
        action,
        pool.id,
        project_id=None,
        actor=describe_actor(principal),
        data={
            "pool": pool.name,
            "window": window.id,
            "kind": window.kind,
            "start": window.starts_at.isoformat(),
            "end": window.ends_at.isoformat(),
        },
    )
    announce(session, QUEUE)
    event_log.record(session, "pool", {"pool": pool.name, "deleted": False}, project_id=None)


async def _views(
    session: Session, principal: Principal, pool: PoolRow, windows: Sequence[PoolWindowRow]
) -> list[PoolWindowView]:
    manages = principal.permits(Permission.SERVER_POOLS)
    readable = principal.projects_with(Permission.PROJECT_READ)
    now = await clock.now(session)
    workers = await worker_rows.load_names(
        session, {one for window in windows for one in window.workers}
    )
    users = await access_rows.load_user_names(
        session,
        {one for window in windows for one in (window.user_id, window.created_by) if one},
    )
    slugs = await access_rows.load_project_slugs(
        session, {window.project_id for window in windows if window.project_id}
    )
    return [
        build_view(
            PoolWindowView,
            window,
            pool=pool.name,
            start=window.starts_at,
            end=window.ends_at,
            has_begun=window.starts_at <= now,
            workers=sorted(workers.get(one, one) for one in window.workers),
            project=slugs.get(window.project_id or "")
            if manages or pool.shows_names or window.project_id in readable
            else None,
            user=users.get(window.user_id or "")
            if manages or window.user_id == principal.user_id
            else None,
            created_by=users.get(window.created_by) if manages else None,
        )
        for window in windows
    ]
