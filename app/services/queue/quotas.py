"""Quotas of projects and persons in a pool: checked at a submission, and what is left of them."""

from collections.abc import Collection
from typing import Any, Final

from app.db import clock
from app.db.engine import Session
from app.db.repositories import quotas as rows
from app.domain.errors import ConflictError
from app.domain.queue.quotas import PoolQuotas, Quota, QuotaUse
from app.domain.queue.start_order import UsageAccount
from app.services.queue import running_limits
from palestra.contract.quotas import QuotaStateView, QuotaUseView, QuotaView

_HOUR: Final = 3_600.0
MEMBERS: Final = ("queued", "running", "device_hours")
"""What quotas limit."""


async def check_queued(
    session: Session, project_id: str, user_id: str, pool: str, number: int, pointer: str
) -> None:
    """Refuses to queue jobs beyond a quota; waits for concurrent transactions that queue jobs.

    Args:
        session: A writing session.
        project_id: Project of the jobs.
        user_id: User who submits the jobs.
        pool: Name of their pool.
        number: Number of jobs to queue.
        pointer: JSON pointer of the pool in the request.

    Raises:
        ConflictError: `quota_exceeded`, with `limit`, `queued` and `asked`.
    """
    found = await rows.lock(session, pool, project_id)
    person = found.of_person(UsageAccount(project_id, user_id)).queued
    project = found.of_project(project_id).queued
    queued = await rows.count_queued(session, pool, project_id)
    for limit, waiting, whose in (
        (person, queued.get(user_id, 0), "your"),
        (project, sum(queued.values()), "your project's"),
    ):
        if limit is not None and waiting + number > limit:
            raise ConflictError(
                "quota_exceeded",
                f"This would queue {number} jobs beside {waiting} in the pool {pool}, and {whose} "
                f"quota is {limit}. Submit at most {max(0, limit - waiting)}, wait until some have "
                "started, or cancel some. An administrator of the server can raise the quota.",
                pointer=pointer,
                limit=limit,
                queued=waiting,
                asked=number,
            )


def list_accounts(use: QuotaUse, project_id: str) -> frozenset[UsageAccount]:
    """Returns the accounts of a project with running jobs or used device-hours."""
    return frozenset(
        one for one in (*use.running, *use.device_seconds) if one.project_id == project_id
    )


async def read_use(session: Session, pool: str, found: PoolQuotas) -> QuotaUse:
    """Returns the amounts that quotas of a pool count, for all accounts."""
    now = await clock.now(session)
    return await running_limits.read_use(session, pool, now, found, all_of_it=True)


def sum_use(use: QuotaUse, accounts: Collection[UsageAccount], queued: int) -> QuotaUseView:
    """Returns the sum of the amounts of the given accounts."""
    seconds = sum(use.device_seconds.get(account, 0.0) for account in accounts)
    return QuotaUseView(
        queued=queued,
        running=sum(use.running.get(account, 0) for account in accounts),
        device_hours=seconds / _HOUR,
    )


def build_state(quota: Quota, used: QuotaUseView) -> QuotaStateView:
    """Returns limits with the used and the remaining amounts."""
    left: dict[str, Any] = {}
    for name in MEMBERS:
        limit = getattr(quota, name)
        left[name] = None if limit is None else max(0, limit - getattr(used, name))
    return QuotaStateView(limits=build_limits(quota), used=used, left=QuotaView(**left))


def build_limits(quota: Quota) -> QuotaView:
    """Returns the view of limits."""
    return QuotaView(**{name: getattr(quota, name) for name in MEMBERS})
