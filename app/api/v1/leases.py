"""Leases: a worker claims a job, its supervisor renews, and releases at the end."""

from typing import Annotated

from fastapi import Depends

from app.api.answer_route import AnswerRoute
from app.api.auth import OfAttempt, WorkerCaller
from app.api.deps import DatabaseDep, SettingsDep, WriteSession
from app.api.resource_router import ResourceRouter
from app.api.strict_body import LARGE, JsonBody
from app.services.attempts import adoption, claims, continuous_evaluation, leases
from palestra.contract.resources import AttemptView
from palestra.contract.work_order import (
    Adoption,
    AdoptionAnswer,
    Claim,
    ClaimAnswer,
    FollowAnswer,
    FollowRequest,
    Release,
    Renewal,
    RenewalAnswer,
)

router = ResourceRouter(prefix="/leases", tags=["leases"], route_class=AnswerRoute)


@router.post("", status_code=201, responses={404: {}, 409: {}})
async def claim_lease(
    principal: WorkerCaller,
    body: Annotated[Claim, Depends(JsonBody(Claim))],
    session: WriteSession,
    settings: SettingsDep,
) -> ClaimAnswer:
    """Claims a job: creates its attempt, raises the fences, and returns the work order."""
    return await claims.claim(session, principal, body, settings)


@router.post("/{attempt_id}:renew", dependencies=[OfAttempt], responses={409: {}})
async def renew_lease(
    attempt_id: str,
    body: Annotated[Renewal, Depends(JsonBody(Renewal))],
    session: WriteSession,
    settings: SettingsDep,
) -> RenewalAnswer:
    """Renews a lease; the answer carries the order for the supervisor."""
    return await leases.renew(session, attempt_id, body, settings)


@router.post("/{attempt_id}:follow", dependencies=[OfAttempt], responses={409: {}})
async def follow_run(
    attempt_id: str,
    body: Annotated[FollowRequest, Depends(JsonBody(FollowRequest))],
    database: DatabaseDep,
) -> FollowAnswer:
    """Returns the next snapshot that a continuous evaluation shall evaluate.

    The run must be one of the attempt's runs.
    """
    return await continuous_evaluation.find_next_snapshot(database, attempt_id, body)


@router.post("/{attempt_id}:adopt", responses={404: {}, 409: {}})
async def adopt_attempt(
    attempt_id: str,
    principal: WorkerCaller,
    body: Annotated[Adoption, Depends(JsonBody(Adoption))],
    session: WriteSession,
    settings: SettingsDep,
) -> AdoptionAnswer:
    """Returns an attempt to its worker when its supervisor died while it uploaded results."""
    return await adoption.adopt(session, principal, attempt_id, body, settings)


@router.post("/{attempt_id}:release", dependencies=[OfAttempt], responses={409: {}})
async def release_lease(
    attempt_id: str,
    body: Annotated[Release, Depends(JsonBody(Release, limit=LARGE))],
    session: WriteSession,
) -> AttemptView:
    """Ends an attempt; repeating it changes nothing."""
    return await leases.release(session, attempt_id, body)
