"""Heartbeats of workers, which report lost attempts and fetch orders and new secrets."""

from datetime import datetime
from typing import Final

from app.db import clock
from app.db.engine import QUEUE, Session, announce
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import workers as rows
from app.domain.principal import Principal
from app.domain.secrets import derive_secret, hash_secret
from app.services.access.own_worker import confirm_own
from app.services.attempts import endings
from app.services.attempts.claimed_slots import list_slots
from app.services.attempts.worker_events import append_worker_event
from app.services.workers.workers import find_own
from app.settings import Settings
from palestra.contract.registration import WorkerHeartbeat, WorkerHeartbeatAnswer
from palestra.contract.states import AttemptState, Cause

_HEARTBEATS_OF_GRACE: Final = 2
"""Heartbeats within which a claim may be missing in a worker's heartbeat.

The claim may have been answered after the worker wrote the heartbeat.
"""
_RENEWALS_OF_GRACE: Final = 3


async def record_heartbeat(
    session: Session,
    principal: Principal,
    worker_id: str,
    body: WorkerHeartbeat,
    settings: Settings,
) -> WorkerHeartbeatAnswer:
    """Stores a worker's heartbeat and returns its order, and its new secret during a rotation.

    Marks attempts as lost that the worker reports as dead, or does not list at all.

    Raises:
        ForbiddenError: `other_worker` if the secret belongs to another worker.
        NotFoundError: If there is no such worker: it must register again.
    """
    await confirm_own(session, principal, worker_id)
    worker = await find_own(session, worker_id)
    silent = (await rows.measure_silence(session, [worker.id]))[worker.id]
    heartbeat_before = worker.last_heartbeat_at
    await rows.touch(session, worker.id, await _measure_skew(session, body))
    mine = {
        attempt.id for attempt in await attempt_rows.list_live_for_workers(session, [worker.id])
    }
    for attempt_id in body.dead_attempts:
        if attempt_id in mine:
            await endings.end_as_lost(session, attempt_id, Cause.WORKER_LOST, f"worker:{worker.id}")
    await _end_unlisted_attempts(session, worker, body, settings, heartbeat_before)
    if silent > worker.silent_seconds:
        announce(session, QUEUE)
        await append_worker_event(session, await find_own(session, worker.id))
    return WorkerHeartbeatAnswer(
        order="drain" if worker.draining else "continue",
        drain_reason=worker.drain_reason,
        secret=await _derive_next_secret(session, principal, worker),
    )


async def _measure_skew(session: Session, body: WorkerHeartbeat) -> float | None:
    """Returns by how many seconds the worker's clock is ahead; `None` if it did not say.

    The way of the message is part of it: some milliseconds, or seconds on a bad network.
    """
    if body.wall is None:
        return None
    return body.wall - (await clock.now(session)).timestamp()


async def _derive_next_secret(
    session: Session, principal: Principal, worker: WorkerRow
) -> str | None:
    """Returns the secret that is to replace a worker's present one; constant until it is used.

    The secret is derived from the present secret, which the server does not store, and from a
    random number, which the worker does not know.
    """
    if worker.rotation_nonce is None:
        return None
    label = f"rotation {worker.id} {worker.rotation_nonce}"
    secret = derive_secret("plw", principal.derivation_key, label)
    await rows.set_next_secret(session, worker, hash_secret(secret))
    return secret


async def _end_unlisted_attempts(
    session: Session,
    worker: WorkerRow,
    body: WorkerHeartbeat,
    settings: Settings,
    heartbeat_before: datetime,
) -> None:
    """Ends the attempts that are live on the server but missing in the worker's heartbeat.

    A claim whose answer was lost leaves such an attempt. An attempt that is just being claimed has
    the locks of its slots, and a live supervisor renews its lease; a heartbeat may have been
    under way while the claim was committed, for as long as the server was slow. The worker wrote it
    after the one before had arrived, so it lists every attempt that was known by then.
    """
    unheard = await attempt_rows.list_silent_for_worker(
        session,
        worker.id,
        AttemptState.STARTING,
        _HEARTBEATS_OF_GRACE * settings.heartbeat_seconds,
        since=heartbeat_before,
    )
    unheard = [one for one in unheard if not set(list_slots(one)) <= set(body.busy_slots)]
    left = await attempt_rows.list_silent_for_worker(
        session,
        worker.id,
        AttemptState.RUNNING,
        _RENEWALS_OF_GRACE * settings.renew_seconds,
        since=heartbeat_before,
    )
    for attempt in (*unheard, *left):
        if attempt.id not in body.live_attempts:
            await endings.end_as_lost(session, attempt.id, Cause.WORKER_LOST, f"worker:{worker.id}")
