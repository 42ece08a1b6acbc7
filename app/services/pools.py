"""What pools permit: which a caller sees, which jobs they take, and which of these may start."""

from collections.abc import Mapping
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow
from app.db.repositories import claims as claim_rows
from app.db.repositories import pools as rows
from app.domain.errors import ConflictError, InvalidError
from app.domain.principal import Principal
from palestra.contract.job_options import Limits
from palestra.contract.names import new_id
from palestra.contract.permissions import Permission
from palestra.contract.problems import suggest_nearest

DEFAULT: Final = "default"


async def list_visible_names(session: Session, principal: Principal) -> frozenset[str] | None:
    """Returns the pools that admit one of the caller's projects; `None` for all pools.

    An administrator of the server sees all pools, except by a request of one project.
    """
    if _sees_all(principal):
        return None
    return frozenset(await rows.list_names_for_projects(session, principal.project_ids))


def _sees_all(principal: Principal) -> bool:
    return principal.permits(Permission.SERVER_POOLS) and not principal.is_within_project


async def load_names_by_project(session: Session) -> Mapping[str, frozenset[str]]:
    """Returns the names of the pools that admit each project, by its ID."""
    return await rows.load_names_by_project(session)


def list_visible_to_stream(
    principal: Principal, admitted: Mapping[str, frozenset[str]], *, only_project: str | None
) -> frozenset[str] | None:
    """Returns the pools whose events a stream's caller receives; `None` for all pools.

    Args:
        principal: The caller as it is now.
        admitted: The answer of `load_names_by_project`.
        only_project: ID of the project to which the stream is limited; `None` for no limit.
    """
    if only_project is None and _sees_all(principal):
        return None
    mine = principal.project_ids if only_project is None else {only_project} & principal.project_ids
    return frozenset[str]().union(*(admitted.get(project_id, ()) for project_id in mine))


async def admit_to_default(session: Session, project_id: str) -> None:
    """Admits a project to the pool `default`, which is made if there is no pool at all."""
    if await rows.is_empty(session):
        await rows.insert(session, {"id": new_id("pol"), "name": DEFAULT})
    pool = await rows.find_by_name(session, DEFAULT)
    if pool is not None:
        await rows.admit(session, pool.id, project_id)


async def check(session: Session, project_id: str, pool: str, pointer: str) -> PoolRow:
    """Returns a pool that admits a project; the pool is not deleted before the commit.

    A pool that does not admit the project is refused like one that does not exist.

    Raises:
        InvalidError: With the code `unknown_pool`; names the pools of the project.
    """
    found = await rows.hold_by_name(session, pool)
    if found is not None and await rows.admits(session, found.id, project_id):
        return found
    known = sorted(await rows.list_names_for_projects(session, [project_id]))
    if not known:
        message = (
            "This project is admitted to no pool of workers, so no job of it can run. Ask an "
            "administrator of the server to admit it to one."
        )
    else:
        message = (
            f"This project has no pool {pool}{suggest_nearest(pool, known) or '.'} "
            f"Its pools are: {', '.join(known)}. Name one of them, or ask an administrator of the "
            "server to admit the project to another."
        )
    raise InvalidError("unknown_pool", message, pointer=pointer)


def apply_default_wall_time(limits: Limits, pool: PoolRow, pointer: str) -> Limits:
    """Returns the limits of a job of a pool, with the pool's default for a missing wall time.

    Raises:
        InvalidError: `wall_time_too_long` if the job asks for more than the pool's maximum.
    """
    longest = pool.max_wall_seconds
    if limits.wall_seconds is None:
        wall = longest if pool.default_wall_seconds is None else pool.default_wall_seconds
        return limits.model_copy(update={"wall_seconds": wall})
    if longest is not None and limits.wall_seconds > longest:
        raise InvalidError(
            "wall_time_too_long",
            f"The pool {pool.name} permits at most {longest} s, not {limits.wall_seconds}. Ask for "
            "less, or leave this out for the pool's default; a run that needs longer can be "
            "resumed from its last snapshot.",
            pointer=f"{pointer}/wall_seconds",
        )
    return limits


async def check_start(session: Session, job: JobRow) -> None:
    """Refuses to start a job whose pool is paused or does not admit its project any more.

    The pool is not paused before the commit.

    Raises:
        ConflictError: `project_not_admitted` or `pool_paused`.
    """
    pool = await claim_rows.hold_pool(session, job.pool, job.project_id)
    if pool is None or not pool.is_admitted:
        raise ConflictError(
            "project_not_admitted",
            "The pool does not admit the job's project any more. Drop the dispatch message.",
        )
    if pool.is_paused:
        raise ConflictError(
            "pool_paused", "The pool is paused: no job of it starts. Drop the dispatch message."
        )
