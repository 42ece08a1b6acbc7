"""Workers, and what the workers of a pool offer."""

from typing import Annotated

from fastapi import Depends, Query, Request

from app.api.answer_route import AnswerRoute, read_contract_version
from app.api.auth import Enroller, PoolManager, Reader, WorkerCaller
from app.api.deps import ReadSession, SettingsDep, WriteSession, get_broker_users
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.services import offers
from app.services.workers import heartbeats, workers
from palestra.contract.names import NAME_PATTERN
from palestra.contract.pools import WorkerView
from palestra.contract.registration import (
    Registration,
    RegistrationAnswer,
    WorkerHeartbeat,
    WorkerHeartbeatAnswer,
)
from palestra.contract.resources import CatalogueView
from palestra.contract.views import Page

router = ResourceRouter(tags=["workers"], route_class=AnswerRoute)

MAX_REGISTRATION = 2**20
"""Bytes of a registration; the catalogue of all built-in parts and Atari games has 40,000."""


@router.post("/workers", status_code=201, responses={409: {}})
async def register_worker(
    principal: Enroller,
    body: Annotated[Registration, Depends(JsonBody(Registration, limit=MAX_REGISTRATION))],
    session: WriteSession,
    settings: SettingsDep,
    request: Request,
) -> RegistrationAnswer:
    """Enrols a worker, or registers it again after a restart.

    A worker that is registered again authenticates with its own secret.
    """
    version = read_contract_version(request)
    return await workers.register(
        session,
        principal,
        body,
        settings,
        get_broker_users(request),
        contract_version=version,
    )


@router.post("/workers/{worker_id}:heartbeat", responses={409: {}})
async def heartbeat_worker(
    worker_id: str,
    principal: WorkerCaller,
    body: Annotated[WorkerHeartbeat, Depends(JsonBody(WorkerHeartbeat))],
    session: WriteSession,
    settings: SettingsDep,
) -> WorkerHeartbeatAnswer:
    """Stores a worker's heartbeat; attempts that the worker does not list are marked as lost."""
    return await heartbeats.record_heartbeat(session, principal, worker_id, body, settings)


@router.post("/workers/{worker_id}:drain")
async def drain_worker(worker_id: str, principal: PoolManager, session: WriteSession) -> WorkerView:
    """Drains a worker: it finishes its attempts and claims no further jobs."""
    return await workers.drain(session, principal, worker_id)


@router.post("/workers/{worker_id}:undrain")
async def undrain_worker(
    worker_id: str, principal: PoolManager, session: WriteSession
) -> WorkerView:
    """Ends the draining of a worker, so that it claims jobs again."""
    return await workers.drain(session, principal, worker_id, draining=False)


@router.post("/workers/{worker_id}:forget")
async def forget_worker(
    worker_id: str, principal: PoolManager, session: WriteSession
) -> WorkerView:
    """Revokes a worker's secret, so that its name can be enrolled again at once."""
    return await workers.forget(session, principal, worker_id)


@router.post("/workers/{worker_id}:rotate-secret", responses={409: {}})
async def rotate_worker_secret(
    worker_id: str, principal: PoolManager, session: WriteSession
) -> WorkerView:
    """Requests a new secret for a worker, which receives the secret with its next heartbeat.

    The present secret stays valid until the worker uses the new one. `secret_rotation` states
    whether the rotation is pending, and whether the worker's version supports it.
    """
    return await workers.rotate_secret(session, principal, worker_id)


@router.get("/workers")
async def list_workers(principal: Reader, session: ReadSession) -> Page[WorkerView]:
    """Lists workers with their slots."""
    return await workers.list_workers(session, principal)


@router.get("/workers/{worker_id}")
async def get_worker(worker_id: str, principal: Reader, session: ReadSession) -> WorkerView:
    """Returns a worker with its slots."""
    return await workers.get(session, principal, worker_id)


@router.get("/catalogue")
async def get_catalogue(
    principal: Reader,
    session: ReadSession,
    pool: Annotated[str, Query(max_length=64, pattern=NAME_PATTERN)] = "default",
) -> CatalogueView:
    """Returns the agents and environments that a pool's workers reported."""
    return await offers.get(session, principal, pool)
