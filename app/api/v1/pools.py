"""Pools of workers, the projects that they admit, and their enrolment tokens."""

from typing import Annotated

from fastapi import Depends, Path, Query

from app.api.auth import PoolManager, Reader
from app.api.deps import ReadSession, WriteSession
from app.api.paging import Cursor, Limit
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.api.user_filter import SubmittedBy
from app.domain.paging import PageRequest
from app.services import waiting_queue
from app.services.queue import start_estimates
from app.services.usage import shares
from app.services.waiting_queue import QueueFilter
from app.services.workers import enrolment_tokens, pool_windows, pools, quotas
from palestra.contract.names import PriorityClass
from palestra.contract.pool_windows import PoolWindowRequest, PoolWindowView
from palestra.contract.pools import (
    EnrolmentTokenRequest,
    EnrolmentTokenView,
    PoolAdmission,
    PoolChange,
    PoolPause,
    PoolRequest,
    PoolView,
)
from palestra.contract.queue import EstimateAccuracy
from palestra.contract.quotas import ProjectQuotasView, QuotaChange
from palestra.contract.usage import PoolSharesView
from palestra.contract.views import Page
from palestra.contract.waiting_queue import WaitingQueueView

router = ResourceRouter(prefix="/pools", tags=["pools"])

PoolName = Annotated[str, Path(max_length=64, description="Name of the pool.")]
ProjectSlug = Annotated[str, Path(max_length=64, description="Slug of the project.")]


async def read_queue_page(limit: Limit = 50, cursor: Cursor = None) -> PageRequest:
    """Reads which page of a queue to list."""
    return PageRequest(limit=limit, cursor=cursor)


async def read_queue_filter(
    user: SubmittedBy,
    priority_class: PriorityClass | None = None,
    project: Annotated[
        str | None, Query(max_length=64, description="Slug of the jobs' project.")
    ] = None,
) -> QueueFilter:
    """Reads which waiting jobs to list."""
    return QueueFilter(priority_class=priority_class, user=user, project=project)


@router.get("")
async def list_pools(principal: Reader, session: ReadSession) -> Page[PoolView]:
    """Lists the pools that admit one of the caller's projects, or all pools for a pool manager.

    `queued` and `running` count jobs of the caller's projects; the slots of all projects count.
    """
    return await pools.list_pools(session, principal)


@router.post("", status_code=201, responses={409: {}})
async def create_pool(
    principal: PoolManager,
    body: Annotated[PoolRequest, Depends(JsonBody(PoolRequest))],
    session: WriteSession,
) -> PoolView:
    """Creates a pool, which admits the projects that the request names."""
    return await pools.create(session, principal, body)


@router.get("/{pool}")
async def get_pool(pool: PoolName, principal: Reader, session: ReadSession) -> PoolView:
    """Returns a pool with its settings, its slots and the number of its jobs."""
    return await pools.get(session, principal, pool)


@router.patch("/{pool}")
async def change_pool(
    pool: PoolName,
    principal: PoolManager,
    body: Annotated[PoolChange, Depends(JsonBody(PoolChange))],
    session: WriteSession,
) -> PoolView:
    """Describes a pool, or changes its wall times or whether it shows names."""
    return await pools.change(session, principal, pool, body)


@router.delete("/{pool}", status_code=204, responses={409: {}})
async def delete_pool(pool: PoolName, principal: PoolManager, session: WriteSession) -> None:
    """Deletes a pool; refused while workers of it are alive or jobs of it have not ended."""
    await pools.delete(session, principal, pool)


@router.post("/{pool}:pause")
async def pause_pool(
    pool: PoolName,
    principal: PoolManager,
    body: Annotated[PoolPause, Depends(JsonBody(PoolPause))],
    session: WriteSession,
) -> PoolView:
    """Pauses a pool: its queued jobs wait and show the reason; its running jobs go on."""
    return await pools.pause(session, principal, pool, body.reason)


@router.post("/{pool}:resume")
async def resume_pool(pool: PoolName, principal: PoolManager, session: WriteSession) -> PoolView:
    """Ends the pause of a pool."""
    return await pools.resume(session, principal, pool)


@router.put("/{pool}/projects/{slug}")
async def admit_project(
    pool: PoolName,
    slug: ProjectSlug,
    principal: PoolManager,
    body: Annotated[PoolAdmission, Depends(JsonBody(PoolAdmission, required=False))],
    session: WriteSession,
) -> PoolView:
    """Admits a project to a pool, or changes its share."""
    return await pools.admit(session, principal, pool, slug, body)


@router.delete("/{pool}/projects/{slug}", status_code=204)
async def remove_project(
    pool: PoolName, slug: ProjectSlug, principal: PoolManager, session: WriteSession
) -> None:
    """Ends the admission of a project: its queued jobs wait, its running ones go on."""
    await pools.remove(session, principal, pool, slug)


@router.get("/{pool}/shares")
async def get_pool_shares(
    pool: PoolName, principal: Reader, session: ReadSession
) -> PoolSharesView:
    """Returns the shares and the usage of a pool's projects and of the persons in them.

    The projects that the caller may not read are summed in one item without persons. A pool that
    shows names has an item for each of these projects. An administrator of the server sees all.
    """
    return await shares.show(session, principal, pool)


@router.get("/{pool}/projects/{slug}/quotas")
async def get_quotas(
    pool: PoolName, slug: ProjectSlug, principal: Reader, session: ReadSession
) -> ProjectQuotasView:
    """Returns the quotas of a project in a pool, with the used and the remaining amounts."""
    return await quotas.show(session, principal, pool, slug)


@router.patch("/{pool}/projects/{slug}/quotas")
async def change_quotas(
    pool: PoolName,
    slug: ProjectSlug,
    principal: PoolManager,
    body: Annotated[QuotaChange, Depends(JsonBody(QuotaChange))],
    session: WriteSession,
) -> ProjectQuotasView:
    """Changes the quotas of a project in a pool, or of its persons."""
    return await quotas.change(session, principal, pool, slug, body)


@router.get("/{pool}/estimates")
async def get_estimate_accuracy(
    pool: PoolName, principal: Reader, session: ReadSession
) -> EstimateAccuracy:
    """Returns how well the latest starts of a pool's jobs were estimated when they were queued."""
    await pools.find_visible(session, principal, pool)
    return await start_estimates.load_accuracy(session, pool)


@router.get("/{pool}/queue")
async def list_pool_queue(
    pool: PoolName,
    principal: Reader,
    session: ReadSession,
    page: Annotated[PageRequest, Depends(read_queue_page)],
    chosen: Annotated[QueueFilter, Depends(read_queue_filter)],
) -> WaitingQueueView:
    """Lists the waiting jobs of a pool in the order in which they will start.

    Those of projects that the caller may read; the places count the others too.
    """
    return await waiting_queue.list_waiting(session, principal, pool, page, chosen)


@router.get("/{pool}/windows")
async def list_pool_windows(
    pool: PoolName, principal: Reader, session: ReadSession
) -> Page[PoolWindowView]:
    """Lists the maintenance windows and reservations of a pool that have not ended."""
    return await pool_windows.list_windows(session, principal, pool)


@router.post("/{pool}/windows", status_code=201, responses={409: {}})
async def plan_pool_window(
    pool: PoolName,
    principal: PoolManager,
    body: Annotated[PoolWindowRequest, Depends(JsonBody(PoolWindowRequest))],
    session: WriteSession,
) -> PoolWindowView:
    """Plans a maintenance window or a reservation.

    Jobs start on its workers only if their time limit ends before it. While it lasts nothing
    starts, or only jobs of the project or person that a reservation is for. What runs goes on.
    """
    return await pool_windows.plan(session, principal, pool, body)


@router.delete("/{pool}/windows/{window_id}", status_code=204)
async def cancel_pool_window(
    pool: PoolName, window_id: str, principal: PoolManager, session: WriteSession
) -> None:
    """Cancels a window, also one that has begun."""
    await pool_windows.cancel(session, principal, pool, window_id)


@router.get("/{pool}/enrolment-tokens")
async def list_enrolment_tokens(
    pool: PoolName, principal: PoolManager, session: ReadSession
) -> Page[EnrolmentTokenView]:
    """Lists the tokens with which workers enrol in a pool, users' older ones included."""
    return await enrolment_tokens.list_tokens(session, principal, pool)


@router.post("/{pool}/enrolment-tokens", status_code=201)
async def create_enrolment_token(
    pool: PoolName,
    principal: PoolManager,
    body: Annotated[EnrolmentTokenRequest, Depends(JsonBody(EnrolmentTokenRequest))],
    session: WriteSession,
) -> EnrolmentTokenView:
    """Creates a token with which workers enrol in a pool; only this answer holds its secret."""
    return await enrolment_tokens.create(session, principal, pool, body)


@router.delete("/{pool}/enrolment-tokens/{enrolment_id}", status_code=204)
async def revoke_enrolment_token(
    pool: PoolName, enrolment_id: str, principal: PoolManager, session: WriteSession
) -> None:
    """Revokes an enrolment token; workers that enrolled with it go on."""
    await enrolment_tokens.revoke(session, principal, pool, enrolment_id)
