"""Workers: registered, alive, drained; pools and what they offer."""

from collections.abc import Mapping
from typing import Any, Final

from app.db.engine import QUEUE, Session, announce
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import job_queue
from app.db.repositories import workers as rows
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import derive_secret, hash_secret, new_secret
from app.services import offers as catalogues
from app.services.access import rights
from app.services.access.audit_actor import actor
from app.services.access.own_worker import check_own
from app.services.attempts import endings
from app.services.audit import audit_log
from app.services.events import event_log
from app.services.views.jobs import pool_facts
from app.services.views.workers import worker_views
from app.settings import Settings
from palestra.contract.names import new_id, pool_queue
from palestra.contract.registration import (
    Registration,
    RegistrationAnswer,
    WorkerHeartbeat,
    WorkerHeartbeatAnswer,
)
from palestra.contract.resources import CatalogueView, PoolView, WorkerView
from palestra.contract.states import AttemptState, Cause
from palestra.contract.views import Page
from palestra.contract.work_order import WORK_ORDER_VERSION, WORK_ORDER_VERSIONS

_HEARTBEATS_OF_GRACE: Final = 2
"""Heartbeats within which a claim may be missing in a worker's heartbeat.

The claim may have been answered after the worker wrote the heartbeat.
"""
_RENEWALS_OF_GRACE: Final = 3


async def register(
    session: Session, principal: Principal, body: Registration, settings: Settings
) -> RegistrationAnswer:
    """Enrols a worker, or registers it again after a restart with the same id.

    The worker keeps its attempts.

    An enrolment token makes a worker and its secret; with that secret, which is returned this once,
    the same worker registers again. Attempts of an earlier boot of its machine are marked as lost.
    An enrolment that is repeated because its answer was lost returns the same secret.

    Raises:
        ConflictError: With the code `worker_name_taken` if another worker has the name and is not
            dead for the reclaim time; with `version_mismatch` if server and worker share no version
            of the work order.
    """
    if WORK_ORDER_VERSION not in body.work_order_versions:
        detail = (
            f"The server speaks version {WORK_ORDER_VERSION} of the work order, the worker "
            "does not. Install one version of Palestra."
        )
        raise ConflictError("version_mismatch", detail)
    if principal.worker_id is None:
        worker, secret = await _enrol(session, principal, body, settings)
    else:
        worker, secret = await _take_back(session, principal, body, settings), None
    _record(
        session,
        principal,
        worker,
        "worker.register",
        {"host": body.host, "pool": body.pool, "version": body.version},
    )
    announce(session, QUEUE)
    await append_worker_event(session, worker)
    broker = settings.worker_broker_url or settings.broker_url
    return RegistrationAnswer(
        worker_id=worker.id,
        secret=secret,
        broker_url=broker.get_secret_value(),
        queue=pool_queue(worker.pool),
        heartbeat_seconds=settings.heartbeat_seconds,
        work_order_versions=WORK_ORDER_VERSIONS,
    )


async def _enrol(
    session: Session, principal: Principal, body: Registration, settings: Settings
) -> tuple[WorkerRow, str]:
    """Creates a worker with its secret, or enrols one anew whose name is free again."""
    label = f"{body.name} {body.enrolment}"
    secret = (
        new_secret("plw")
        if body.enrolment is None
        else derive_secret("plw", principal.derivation_key, label)
    )
    project_id = rights.only_project(principal)
    row = {
        **_row(principal, body, settings),
        "project_id": project_id,
        "secret_hash": hash_secret(secret),
    }
    is_new = await rows.add(session, row)
    worker = await rows.named(session, project_id, body.name)
    if not is_new:
        if worker.secret_hash not in {None, row["secret_hash"]} and not await _is_dead(
            session, worker, settings
        ):
            raise ConflictError("worker_name_taken", _name_taken(settings), pointer="/name")
        await rows.register_again(session, worker, row)
    return worker, secret


def _name_taken(settings: Settings) -> str:
    return (
        "Another worker has this name. Start this one with another: palestra worker "
        "--name NAME; or on the state directory that holds "
        "the worker's secret. A worker that is dead frees its name after "
        f"{settings.reclaim_seconds:g} s; an admin frees it at once: "
        "palestra forget-worker NAME"
    )


async def _is_dead(session: Session, worker: WorkerRow, settings: Settings) -> bool:
    silent = (await rows.silence(session, [worker.id]))[worker.id]
    return silent > settings.reclaim_seconds and not await attempt_rows.live_on(
        session, [worker.id]
    )


async def _take_back(
    session: Session, principal: Principal, body: Registration, settings: Settings
) -> WorkerRow:
    worker = await _find(session, principal, principal.worker_id or "")
    if worker.name != body.name:
        detail = (
            f"This secret belongs to the worker {worker.name}. Enrol under another name with "
            "an enrolment token."
        )
        raise ConflictError("other_worker", detail, pointer="/name")
    former_boot = worker.boot_id
    await rows.register_again(session, worker, _row(principal, body, settings))
    if former_boot != body.boot_id:
        await _give_up_older_boots(session, worker)
    return worker


def _row(principal: Principal, body: Registration, settings: Settings) -> dict[str, object]:
    shown = body.model_dump(mode="json", exclude={"gpus", "catalogue", "enrolment"})
    return {
        **shown,
        "id": new_id("wrk"),
        "gpus": [gpu.model_dump(mode="json") for gpu in body.gpus],
        "gpu_count": len(body.gpus),
        "catalogue": body.catalogue.model_dump(mode="json"),
        "silent_seconds": settings.worker_offline_seconds,
        "created_by": principal.user_id,
    }


async def _give_up_older_boots(session: Session, worker: WorkerRow) -> None:
    for attempt in await attempt_rows.live_on(session, [worker.id]):
        # An attempt that was uploading results left them on the disk: the worker takes it back, or
        # the reaper gives it up.
        if attempt.boot_id != worker.boot_id and not (attempt.backlog or {}).get("delivering"):
            await endings.as_lost(session, attempt.id, Cause.WORKER_LOST, f"worker:{worker.id}")


async def heartbeat(
    session: Session,
    principal: Principal,
    worker_id: str,
    body: WorkerHeartbeat,
    settings: Settings,
) -> WorkerHeartbeatAnswer:
    """Stores a worker's heartbeat and returns its order.

    Marks attempts as lost that the worker reports as dead, or does not list at all.

    Raises:
        ForbiddenError: `other_worker` if the secret belongs to another worker.
        NotFoundError: If the project has no such worker: it must register again.
    """
    check_own(principal, worker_id)
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
        await append_worker_event(session, worker)
    return WorkerHeartbeatAnswer(order="drain" if worker.draining else "continue")


async def _give_up_unknown(
    session: Session, worker: WorkerRow, body: WorkerHeartbeat, settings: Settings
) -> None:
    """Ends the attempts that are live on the server but missing in the worker's heartbeat.

    A claim whose answer was lost leaves such an attempt. The worker holds the slot's lock of an
    attempt that it is claiming, and a live supervisor renews the lease of its attempt; a heartbeat
    may have been under way while the claim was committed.
    """
    unheard = await attempt_rows.silent_on(
        session, worker.id, AttemptState.STARTING, _HEARTBEATS_OF_GRACE * settings.heartbeat_seconds
    )
    unheard = [attempt for attempt in unheard if attempt.slot not in body.busy_slots]
    left = await attempt_rows.silent_on(
        session, worker.id, AttemptState.RUNNING, _RENEWALS_OF_GRACE * settings.renew_seconds
    )
    for attempt in (*unheard, *left):
        if attempt.id not in body.live_attempts:
            began = attempt.state != AttemptState.STARTING
            await endings.as_lost(
                session, attempt.id, Cause.WORKER_LOST, f"worker:{worker.id}", began=began
            )


async def drain(
    session: Session, principal: Principal, worker_id: str, *, draining: bool = True
) -> WorkerView:
    """Sets whether a worker drains: it finishes its attempts and claims no further jobs.

    The state ends when the worker registers again.

    Raises:
        NotFoundError: If the project has no such worker.
    """
    worker = await _find(session, principal, worker_id)
    if worker.draining is not draining:
        await rows.set_draining(session, worker, draining=draining)
        _record(session, principal, worker, "worker.drain" if draining else "worker.undrain")
        announce(session, QUEUE)
        await append_worker_event(session, worker)
    return await _view(session, worker)


async def forget(session: Session, principal: Principal, worker_id: str) -> WorkerView:
    """Revokes a worker's secret, so that its name can be enrolled again at once.

    Its attempts continue with their own tokens.

    Raises:
        NotFoundError: If the project has no such worker.
    """
    worker = await _find(session, principal, worker_id)
    await rows.forget_secret(session, worker)
    _record(session, principal, worker, "worker.forget")
    return await _view(session, worker)


def _record(
    session: Session,
    principal: Principal,
    worker: WorkerRow,
    action: str,
    data: Mapping[str, Any] | None = None,
) -> None:
    audit_log.record(
        session,
        action,
        worker.id,
        project_id=worker.project_id,
        actor=actor(principal),
        data=data,
    )


async def append_worker_event(session: Session, worker: WorkerRow) -> None:
    """Appends the event of a changed worker."""
    event_log.record(session, "worker", await _view(session, worker), project_id=worker.project_id)


async def list_workers(session: Session, principal: Principal) -> Page[WorkerView]:
    """Returns the project's workers by name."""
    found = await rows.all_of(session, principal.project_ids)
    return Page(items=await worker_views(session, found), next_cursor=None)


async def get(session: Session, principal: Principal, worker_id: str) -> WorkerView:
    """Returns a worker.

    Raises:
        NotFoundError: If the project has no worker with that ID.
    """
    return await _view(session, await _find(session, principal, worker_id))


async def list_pools(session: Session, principal: Principal) -> Page[PoolView]:
    """Returns the pools that have workers or waiting jobs, by name."""
    counts = await job_queue.counts_by_pool(session, principal.project_ids)
    known = await rows.registered(session, principal.project_ids)
    names = sorted({*counts, *known})
    facts = await pool_facts(session, principal.project_ids, names)
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


async def _find(session: Session, principal: Principal, worker_id: str) -> WorkerRow:
    worker = await rows.get(session, principal.project_ids, worker_id)
    if worker is None:
        raise NotFoundError("worker")
    return worker


async def _view(session: Session, worker: WorkerRow) -> WorkerView:
    (view,) = await worker_views(session, [worker])
    return view
