"""Lists the waiting jobs of a pool in the order in which they will start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from app.db.clock import EPOCH
from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import access as access_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import waiting_jobs as rows
from app.db.repositories.waiting_jobs import RestKey, WaitingFilter
from app.domain.errors import InvalidError
from app.domain.paging import PageRequest, build_keyset, encode_cursor
from app.domain.principal import Principal
from app.services.queue import queue_facts
from app.services.views.jobs import build_job_views
from app.services.workers import pools
from palestra.contract.names import PriorityClass
from palestra.contract.waiting_queue import LaneView, WaitingQueueView

_SORT: Final = "queue"
_FRONT: Final = "front"
_NOBODY: Final = ""
"""The ID of no user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    """Which waiting jobs of a pool to list; `None` takes all."""

    priority_class: PriorityClass | None = None
    user: str | None = None
    """Login name of who submitted them."""
    project: str | None = None
    """Slug."""


async def list_waiting(
    session: Session,
    principal: Principal,
    pool: str,
    request: PageRequest,
    chosen: QueueFilter,
) -> WaitingQueueView:
    """Returns a page of the waiting jobs of the caller's projects in a pool.

    A page goes on after the last job of the page before, wherever that stands now; if it started
    meanwhile, after the same number of jobs.

    Args:
        session: A reading session.
        principal: The caller.
        pool: Name of the pool.
        request: Limit and cursor; the order is that of the queue.
        chosen: Class, person and project.

    Raises:
        NotFoundError: If the pool does not exist for the caller.
        InvalidError: `invalid_cursor` or `invalid_limit`.
    """
    await pools.find_visible(session, principal, pool)
    wanted = WaitingFilter(
        pool=pool,
        project_ids=frozenset(
            one.project_id for one in principal.memberships if chosen.project in {None, one.slug}
        ),
        priority_class=chosen.priority_class,
        user_id=None if chosen.user is None else await _find_user_id(session, chosen.user),
    )
    limit, after = _read(request)
    places = await queue_facts.find_places(session, {pool})
    matching = await rows.filter_ids(session, wanted, places)
    front = sorted(matching, key=lambda job_id: places[job_id].number)
    shown, cursor = await _cut(session, wanted, front, limit, after)
    return WaitingQueueView(
        items=await build_job_views(session, shown, known_places=places),
        next_cursor=cursor,
        lanes=await _count_lanes(session, principal, pool),
    )


async def _find_user_id(session: Session, name: str) -> str:
    found = await access_rows.find_user_by_name(session, name)
    return _NOBODY if found is None else found.id


async def _count_lanes(session: Session, principal: Principal, pool: str) -> list[LaneView]:
    numbers = await rows.count_by_class(session, pool, principal.project_ids, principal.user_id)
    return [
        LaneView(priority_class=priority_class, waiting=waiting, mine=mine)
        for priority_class in PriorityClass
        for waiting, mine in [numbers.get(priority_class, (0, 0))]
    ]


async def _cut(
    session: Session,
    wanted: WaitingFilter,
    front: Sequence[str],
    limit: int,
    after: tuple[int, str] | RestKey | None,
) -> tuple[Sequence[JobRow], str | None]:
    """Returns the rows of a page, and the cursor of the next one."""
    first = len(front)
    key: RestKey | None = None
    if after is None:
        first = 0
    elif len(after) == 2:
        number, job_id = after
        first = front.index(job_id) + 1 if job_id in front else min(number, len(front))
    else:
        key = after
    ids = front[first : first + limit]
    by_id = {row.id: row for row in await job_rows.list_by_ids(session, ids)}
    found = [by_id[job_id] for job_id in ids if job_id in by_id]
    if len(ids) == limit:
        is_last = first + limit == len(front) and not await rows.list_rest(
            session, wanted, front, None, 1
        )
        return found, None if is_last else _encode_front(first + limit, ids[-1])
    missing = limit - len(ids)
    rest = await rows.list_rest(session, wanted, front, key, missing + 1)
    shown = [*found, *rest[:missing]]
    return shown, _encode_rest(rest[missing - 1]) if len(rest) > missing else None


def _encode_front(number: int, job_id: str) -> str:
    return encode_cursor(_SORT, (f"{_FRONT} {number}",), job_id)


def _encode_rest(job: JobRow) -> str:
    rank, queued_at, job_id = rows.get_rest_key(job)
    micros = (queued_at - EPOCH) // timedelta(microseconds=1)
    return encode_cursor(_SORT, (f"{rank} {micros}",), job_id)


def _read(request: PageRequest) -> tuple[int, tuple[int, str] | RestKey | None]:
    keys = build_keyset(replace(request, sort=_SORT), [_SORT])
    if keys.after is None:
        return keys.limit, None
    first, _, second = str(keys.after[0]).partition(" ")
    try:
        if first == _FRONT:
            return keys.limit, (int(second), keys.after[1])
        queued_at = EPOCH + timedelta(microseconds=int(second))
        return keys.limit, (int(first), queued_at, keys.after[1])
    except (ValueError, OverflowError):
        raise InvalidError(
            "invalid_cursor",
            "invalid cursor: pass next_cursor of the page before",
            pointer="query/cursor",
        ) from None
