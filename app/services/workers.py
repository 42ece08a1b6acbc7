"""Workers: registered, alive, drained; pools and what they offer."""

from typing import Final

from app.db.engine import QUEUE, Session, announce
from app.db.models.workers import Worker
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import audit
from app.db.repositories import jobs as job_rows
from app.db.repositories import workers as rows
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.services import catalogue as catalogues
from app.services import endings, events, views
from app.services.actors import actor
from app.settings import Settings
from palestra.contract.names import new_id, pool_queue
from palestra.contract.resources import CatalogueView, PoolView, WorkerView
from palestra.contract.states import AttemptState, Cause
from palestra.contract.views import Page
from palestra.contract.work_order import (
    WORK_ORDER_VERSION,
    WORK_ORDER_VERSIONS,
    Registration,
    RegistrationAnswer,
    WorkerHeartbeat,
    WorkerHeartbeatAnswer,
)

_HEARTBEATS_OF_GRACE: Final = 2
"""A claim younger than so many heartbeats may have been answered after the worker wrote the present one."""
_RENEWALS_OF_GRACE: Final = 3


async def register(session: Session, principal: Principal, body: Registration, settings: Settings) -> RegistrationAnswer:
    """Introduces a worker, or the same one again after a restart: it keeps its id, so that its attempts stay its own.

    Attempts of an earlier boot of the machine are known to be gone and are given up at once.

    Raises:
        ConflictError: With the code `worker_name_taken` if a worker of that name is alive on another host; with `version_mismatch` if
            server and worker share no version of the work order.
    """
    if WORK_ORDER_VERSION not in body.work_order_versions:
        detail = f"The server speaks version {WORK_ORDER_VERSION} of the work order, the worker does not. Install one version of Palestra."
        raise ConflictError("version_mismatch", detail)
    await _check_name(session, principal, body)
    worker, former_boot = await rows.register(session, _row(principal, body, settings))
    if former_boot is not None and former_boot != body.boot_id:
        await _give_up_older_boots(session, worker)
    row = {"project_id": worker.project_id, "actor": actor(principal), "action": "worker.register", "object_type": "worker"}
    audit.append(session, {**row, "object_id": worker.id, "data": {"host": body.host, "pool": body.pool, "version": body.version}})
    announce(session, QUEUE)
    await tell(session, worker)
    broker = settings.worker_broker_url or settings.broker_url
    return RegistrationAnswer(
        worker_id=worker.id,
        broker_url=broker.get_secret_value(),
        queue=pool_queue(worker.pool),
        heartbeat_seconds=settings.heartbeat_seconds,
        work_order_versions=WORK_ORDER_VERSIONS,
    )


async def _check_name(session: Session, principal: Principal, body: Registration) -> None:
    known = await rows.find(session, principal.project_id, body.name)
    if known is None or known.host == body.host:
        return
    silent = (await rows.silence(session, [known.id]))[known.id]
    if silent <= known.silent_seconds:
        detail = "A worker of this name is alive on another host. Give this one another name: palestra worker --name NAME"
        raise ConflictError("worker_name_taken", detail, pointer="/name")


def _row(principal: Principal, body: Registration, settings: Settings) -> dict[str, object]:
    shown = body.model_dump(mode="json", exclude={"gpus", "catalogue"})
    return {
        **shown,
        "id": new_id("wrk"),
        "project_id": principal.project_id,
        "gpus": [gpu.model_dump(mode="json") for gpu in body.gpus],
        "gpu_count": len(body.gpus),
        "catalogue": body.catalogue.model_dump(mode="json"),
        "silent_seconds": settings.worker_offline_seconds,
        "created_by": principal.user_id,
    }


async def _give_up_older_boots(session: Session, worker: Worker) -> None:
    for attempt in await attempt_rows.live_on(session, [worker.id]):
        if attempt.boot_id != worker.boot_id:
            await endings.as_lost(session, attempt.id, Cause.WORKER_LOST, f"worker:{worker.id}")


async def heartbeat(
    session: Session, principal: Principal, worker_id: str, body: WorkerHeartbeat, settings: Settings
) -> WorkerHeartbeatAnswer:
    """Notes a sign of life; gives up the attempts that the worker knows to be dead, and those of which it knows nothing.

    Raises:
        NotFoundError: If the project has no such worker: it must register again.
    """
    worker = await _find(session, principal, worker_id)
    silent = (await rows.silence(session, [worker.id]))[worker.id]
    await rows.touch(session, worker.id)
    mine = {attempt.id for attempt in await attempt_rows.live_on(session, [worker.id])}
    for attempt_id in body.dead_attempts:
        if attempt_id in mine:
            await endings.as_lost(session, attempt_id, Cause.WORKER_LOST, f"worker:{worker.id}")
    await _give_up_unknown(session, worker, body, settings)
    if silent > worker.silent_seconds:
        announce(session, QUEUE)
        await session.refresh(worker)
        await tell(session, worker)
    return WorkerHeartbeatAnswer(order="drain" if worker.draining else "continue")


async def _give_up_unknown(session: Session, worker: Worker, body: WorkerHeartbeat, settings: Settings) -> None:
    """Ends the attempts that the server counts on a worker and the worker does not know.

    A claim whose answer was lost leaves such an attempt. One that the worker is just claiming has its
    slot's lock, and one whose supervisor lives renews its lease; a heartbeat may have been under way
    while the claim was committed.
    """
    unheard = await attempt_rows.silent_on(session, worker.id, AttemptState.STARTING, _HEARTBEATS_OF_GRACE * settings.heartbeat_seconds)
    unheard = [attempt for attempt in unheard if attempt.slot not in body.busy_slots]
    left = await attempt_rows.silent_on(session, worker.id, AttemptState.RUNNING, _RENEWALS_OF_GRACE * settings.renew_seconds)
    for attempt in (*unheard, *left):
        if attempt.id not in body.live_attempts:
            began = attempt.state != AttemptState.STARTING
            await endings.as_lost(session, attempt.id, Cause.WORKER_LOST, f"worker:{worker.id}", began=began)


async def drain(session: Session, principal: Principal, worker_id: str, *, draining: bool = True) -> WorkerView:
    """Lets a worker end what it works on and take nothing new; or take jobs again. It forgets this when it registers again.

    Raises:
        NotFoundError: If the project has no such worker.
    """
    worker = await _find(session, principal, worker_id)
    if worker.draining is not draining:
        await rows.set_draining(session, worker, draining=draining)
        row = {"project_id": worker.project_id, "actor": actor(principal), "object_type": "worker", "object_id": worker.id}
        audit.append(session, {**row, "action": "worker.drain" if draining else "worker.undrain", "data": {}})
        announce(session, QUEUE)
        await tell(session, worker)
    return await _view(session, worker)


async def tell(session: Session, worker: Worker) -> None:
    """Registers the live message of a changed worker."""
    events.record(session, "worker", await _view(session, worker), project_id=worker.project_id)


async def list_workers(session: Session, principal: Principal) -> Page[WorkerView]:
    """Returns the project's workers by name."""
    found = await rows.all_of(session, principal.project_id)
    return Page(items=await views.worker_views(session, found), next_cursor=None)


async def get(session: Session, principal: Principal, worker_id: str) -> WorkerView:
    """Returns a worker.

    Raises:
        NotFoundError: If the project has none of that id.
    """
    return await _view(session, await _find(session, principal, worker_id))


async def list_pools(session: Session, principal: Principal) -> Page[PoolView]:
    """Returns the pools that have workers or waiting jobs, by name."""
    counts = await job_rows.counts_by_pool(session, principal.project_id)
    known = await rows.registered(session, principal.project_id)
    names = sorted({*counts, *known})
    facts = await views.pool_facts(session, principal.project_id, names)
    pools = [
        PoolView(
            name=name,
            workers=facts[name].workers,
            slots=facts[name].slots,
            free_slots=facts[name].free_slots,
            queued=counts.get(name, (0, 0))[0],
            running=counts.get(name, (0, 0))[1],
        )
        for name in names
    ]
    return Page(items=pools, next_cursor=None)


async def catalogue(session: Session, principal: Principal, pool: str) -> CatalogueView:
    """Returns the agents and environments that a pool's workers reported."""
    return await catalogues.get(session, principal, pool)


async def _find(session: Session, principal: Principal, worker_id: str) -> Worker:
    worker = await rows.get(session, principal.project_id, worker_id)
    if worker is None:
        raise NotFoundError("worker")
    return worker


async def _view(session: Session, worker: Worker) -> WorkerView:
    (view,) = await views.worker_views(session, [worker])
    return view
