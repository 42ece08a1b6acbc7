"""Workers: registered, alive, drained, with secrets that are rotated or revoked."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from app.db.engine import BROKER_USERS, QUEUE, Session, announce
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import workers as rows
from app.db.repositories.workers import WorkerQueue
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import derive_secret, generate_secret, hash_secret
from app.services import pools
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.access.own_worker import confirm_own
from app.services.attempts import endings
from app.services.attempts.worker_events import append_worker_event
from app.services.audit import audit_log
from app.services.views.workers import SlotReader, build_worker_views
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings
from palestra.contract.answers import CONTRACT_VERSION
from palestra.contract.names import new_id, worker_queue
from palestra.contract.pools import WorkerView
from palestra.contract.registration import (
    Registration,
    RegistrationAnswer,
)
from palestra.contract.states import Cause
from palestra.contract.views import Page
from palestra.contract.work_order import (
    OLDEST_WORK_ORDER,
    WORK_ORDER_VERSION,
    WORK_ORDER_VERSIONS,
)

_MADE_VERSIONS: Final = frozenset(range(OLDEST_WORK_ORDER, WORK_ORDER_VERSION + 1))
_NO_ROTATION: Final = {"next_secret_hash": None, "rotation_nonce": None, "secret_since": None}


async def register(
    session: Session,
    principal: Principal,
    body: Registration,
    settings: Settings,
    broker_users: BrokerUsers,
    *,
    contract_version: int = CONTRACT_VERSION,
) -> RegistrationAnswer:
    """Enrols a worker, or registers it again after a restart with the same id.

    The worker keeps its attempts.

    An enrolment token makes a worker and its secret; with that secret, which is returned only once,
    the same worker registers again. Attempts of an earlier boot of its machine are marked as lost.
    An enrolment that is repeated because its answer was lost returns the same secret.

    Args:
        session: A writing session.
        principal: An enrolment token, or the worker.
        body: The registration.
        settings: The settings.
        broker_users: Grants the worker access to its queue.
        contract_version: Version of the answers that the worker knows.

    Raises:
        InvalidError: `other_pool` if the credential is for another pool than the worker asks for.
        ConflictError: With the code `worker_name_taken` if another worker has the name and is not
            dead for the reclaim time; with `version_mismatch` if server and worker share no version
            of the work order.
    """
    if not _MADE_VERSIONS.intersection(body.work_order_versions):
        detail = (
            f"The server speaks versions {OLDEST_WORK_ORDER} to {WORK_ORDER_VERSION} of the work "
            "order, the worker none of them. Install one version of Palestra."
        )
        raise ConflictError("version_mismatch", detail)
    row = _row(body, settings) | {"contract_version": contract_version}
    if principal.worker_id is None:
        worker, secret = await _enrol(session, principal, body, row, settings)
    else:
        worker, secret = await _take_back(session, principal, body, row), None
    _record(
        session,
        principal,
        worker,
        "worker.register",
        {"host": body.host, "pool": worker.pool, "version": body.version},
    )
    access = broker_users.grant(worker.id)
    queue = WorkerQueue(worker_queue(worker.pool, worker.id), access.password_hash)
    await rows.set_queue(session, worker, queue)
    announce(session, QUEUE)
    announce(session, BROKER_USERS)
    await append_worker_event(session, worker)
    return RegistrationAnswer(
        worker_id=worker.id,
        secret=secret,
        broker_url=access.url,
        queue=queue.name,
        heartbeat_seconds=settings.heartbeat_seconds,
        work_order_versions=WORK_ORDER_VERSIONS,
    )


async def _enrol(
    session: Session,
    principal: Principal,
    body: Registration,
    row: dict[str, object],
    settings: Settings,
) -> tuple[WorkerRow, str]:
    """Creates a worker with its secret.

    An offline worker of the same name is enrolled again; a forgotten one gives its name away.
    """
    label = f"{body.name} {body.enrolment}"
    secret = (
        generate_secret("plw")
        if body.enrolment is None
        else derive_secret("plw", principal.derivation_key, label)
    )
    row |= {"pool": _find_pool(principal, body), "secret_hash": hash_secret(secret)}
    assert principal.enrolment_id is not None
    row["created_by"] = await pool_rows.use_token(session, principal.enrolment_id)
    worker, is_new = await _add(session, row, body.name)
    if not is_new:
        if worker.secret_hash != row["secret_hash"] and not await _is_dead(
            session, worker, settings
        ):
            raise ConflictError("worker_name_taken", _name_taken(settings), pointer="/name")
        await rows.register_again(session, worker, row | _NO_ROTATION | {"former_name": None})
    return worker, secret


async def _add(session: Session, row: dict[str, object], name: str) -> tuple[WorkerRow, bool]:
    """Returns the worker of a name, locked, and whether it was added; replaces a forgotten one.

    The machine of a forgotten worker knows the former ID, after which its queue is named.
    """
    while True:
        is_new = await rows.add(session, row)
        worker = await rows.lock_by_name(session, name)
        if worker is None:
            continue
        if worker.secret_hash is not None:
            return worker, is_new
        await rows.replace(session, worker)


def _find_pool(principal: Principal, body: Registration) -> str:
    """Returns the pool in which a worker enrols."""
    assert principal.pool is not None
    if body.pool not in {None, principal.pool}:
        raise InvalidError(
            "other_pool",
            f"This enrolment token is one of the pool {principal.pool}, not of {body.pool}. Start "
            f"the worker with --pool {principal.pool}, or with a token of the other pool.",
            pointer="/pool",
        )
    return principal.pool


def _name_taken(settings: Settings) -> str:
    return (
        "Another worker has this name. Start this one with another: palestra worker "
        "--name NAME; or on the state directory that holds "
        "the worker's secret. A worker that is dead frees its name after "
        f"{settings.reclaim_seconds:g} s; an admin frees it at once: "
        "palestra forget-worker NAME"
    )


async def _is_dead(session: Session, worker: WorkerRow, settings: Settings) -> bool:
    silent = (await rows.measure_silence(session, [worker.id]))[worker.id]
    return silent > settings.reclaim_seconds and not await attempt_rows.list_live_for_workers(
        session, [worker.id]
    )


async def _take_back(
    session: Session, principal: Principal, body: Registration, row: dict[str, object]
) -> WorkerRow:
    worker_id = principal.worker_id or ""
    await confirm_own(session, principal, worker_id)
    worker = await find_own(session, worker_id)
    if body.name not in {worker.name, worker.former_name}:
        detail = (
            f"This secret belongs to the worker {worker.name}. Enrol under another name with "
            "an enrolment token."
        )
        raise ConflictError("other_worker", detail, pointer="/name")
    if body.pool not in {None, worker.pool}:
        raise InvalidError(
            "other_pool",
            f"This worker belongs to the pool {worker.pool}, not to {body.pool}. Start it with "
            f"--pool {worker.pool}; or forget it (palestra forget-worker {worker.name}) and start "
            "it with an enrolment token of the other pool.",
            pointer="/pool",
        )
    former_boot = worker.boot_id
    await rows.register_again(session, worker, row | {"pool": worker.pool})
    if former_boot != body.boot_id:
        await _give_up_older_boots(session, worker)
    return worker


def _row(body: Registration, settings: Settings) -> dict[str, object]:
    shown = body.model_dump(mode="json", exclude={"gpus", "catalogue", "enrolment"})
    return {
        **shown,
        "id": new_id("wrk"),
        "gpus": [gpu.model_dump(mode="json") for gpu in body.gpus],
        "gpu_count": len(body.gpus),
        "catalogue": body.catalogue.model_dump(mode="json"),
        "silent_seconds": settings.worker_offline_seconds,
    }


async def _give_up_older_boots(session: Session, worker: WorkerRow) -> None:
    for attempt in await attempt_rows.list_live_for_workers(session, [worker.id]):
        # An attempt that was uploading results left them on the disk: the worker takes it back, or
        # the reaper gives it up.
        if attempt.boot_id != worker.boot_id and not (attempt.backlog or {}).get("delivering"):
            await endings.end_as_lost(session, attempt.id, Cause.WORKER_LOST, f"worker:{worker.id}")


async def rotate_secret(session: Session, principal: Principal, worker_id: str) -> WorkerView:
    """Requests a new secret for a worker, which receives the secret with its next heartbeat.

    The present secret stays valid until the worker uses the new one. Asking again before that
    changes nothing.

    Raises:
        NotFoundError: If there is no such worker.
        ConflictError: `not_enrolled` if the worker has no secret.
    """
    rights.require_pool_management(principal)
    worker = await _find(session, principal, worker_id)
    if worker.secret_hash is None:
        raise ConflictError(
            "not_enrolled",
            "This worker has no secret: it was forgotten, or its pool was deleted. Start it with "
            "an enrolment token of a pool.",
        )
    if worker.rotation_nonce is None:
        await rows.ask_for_rotation(session, worker, secrets.token_hex(32))
        _record(session, principal, worker, "worker.rotate")
        await append_worker_event(session, worker)
    return await _view(session, principal, worker)


async def drain(
    session: Session, principal: Principal, worker_id: str, *, draining: bool = True
) -> WorkerView:
    """Sets whether a worker drains: it finishes its attempts and claims no further jobs.

    The state ends when the worker registers again.

    Raises:
        NotFoundError: If there is no such worker.
    """
    rights.require_pool_management(principal)
    worker = await _find(session, principal, worker_id)
    if worker.draining is not draining:
        await rows.set_draining(session, worker, draining=draining)
        _record(session, principal, worker, "worker.drain" if draining else "worker.undrain")
        announce(session, QUEUE)
        await append_worker_event(session, worker)
    return await _view(session, principal, worker)


async def forget(session: Session, principal: Principal, worker_id: str) -> WorkerView:
    """Revokes a worker's secret, so that its name can be enrolled again at once.

    Its attempts continue with their own tokens.

    Raises:
        NotFoundError: If there is no such worker.
    """
    rights.require_pool_management(principal)
    worker = await _find(session, principal, worker_id)
    await rows.forget_secret(session, worker)
    announce(session, BROKER_USERS)
    _record(session, principal, worker, "worker.forget")
    await append_worker_event(session, worker)
    return await _view(session, principal, worker)


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
        project_id=None,
        actor=describe_actor(principal),
        data=data,
    )


async def list_workers(session: Session, principal: Principal) -> Page[WorkerView]:
    """Returns the workers of the pools that the caller sees, by name."""
    found = await rows.list_for_pools(session, await pools.list_visible_names(session, principal))
    views = await build_worker_views(session, found, SlotReader.from_principal(principal))
    return Page(items=views, next_cursor=None)


async def get(session: Session, principal: Principal, worker_id: str) -> WorkerView:
    """Returns a worker.

    Raises:
        NotFoundError: If there is none of that id in a pool that the caller sees.
    """
    return await _view(session, principal, await _find(session, principal, worker_id))


async def _find(session: Session, principal: Principal, worker_id: str) -> WorkerRow:
    worker = await rows.find(session, worker_id)
    visible = await pools.list_visible_names(session, principal)
    if worker is None or (visible is not None and worker.pool not in visible):
        raise NotFoundError("worker")
    return worker


async def find_own(session: Session, worker_id: str) -> WorkerRow:
    """Returns the worker of a request with a worker's secret.

    Raises:
        NotFoundError: If there is none of that ID.
    """
    worker = await rows.find(session, worker_id)
    if worker is None:
        raise NotFoundError("worker")
    return worker


async def _view(session: Session, principal: Principal, worker: WorkerRow) -> WorkerView:
    (view,) = await build_worker_views(session, [worker], SlotReader.from_principal(principal))
    return view
