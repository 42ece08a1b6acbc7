"""Selects the jobs to dispatch: the next ones of each queue, at most one per free slot."""

from collections.abc import Sequence
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import job_queue as rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import snapshots as snapshot_rows
from app.db.repositories import workers as worker_rows
from app.db.repositories.job_queue import Queue, ReadyJob
from app.db.repositories.workers import Offer
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from palestra.contract.states import Cause, JobState, SnapshotState
from palestra.contract.work_order import Failure

__all__ = ["ReadyJob", "fail_without_snapshot", "mark_dispatched", "plan"]

_ACTOR: Final = "daemon:dispatcher"


async def plan(session: Session, ring_seconds: float) -> list[ReadyJob]:
    """Returns the jobs to dispatch, in the order of each pool's queue.

    All projects that a pool admits share its queue and its slots; a paused pool has nothing due.

    A job is included if no dispatch message was sent for it since it was queued, or if no worker
    claimed it within `ring_seconds` of the last one. Each dispatch message younger than
    `ring_seconds` reserves a free slot.
    """
    offers = await worker_rows.list_offers(session)
    found: list[ReadyJob] = []
    for pool in await rows.list_waiting_pools(session):
        mine = [offer for offer in offers if offer.pool == pool]
        found += await _ready(session, pool, mine, ring_seconds)
    return found


async def _ready(
    session: Session, pool: str, offers: Sequence[Offer], ring_seconds: float
) -> Sequence[ReadyJob]:
    free = [offer for offer in offers if offer.live < offer.slots]
    if not free:
        return []
    queue = Queue(
        pool=pool,
        most_gpus=max(offer.gpus for offer in free),
        versions=frozenset().union(*(offer.versions for offer in free)),
    )
    capacity = sum(
        offer.slots - offer.live for offer in free
    ) - await rows.count_outstanding_messages(session, queue, ring_seconds)
    return await rows.list_ready(session, queue, ring_seconds, capacity) if capacity > 0 else []


async def mark_dispatched(session: Session, jobs: Sequence[ReadyJob]) -> None:
    """Records that dispatch messages were sent. Without the record they are sent again."""
    await rows.mark_dispatched(session, jobs)


async def fail_without_snapshot(session: Session) -> int:
    """Fails queued jobs whose snapshot was deleted while they waited; returns how many."""
    without_snapshot = [
        job
        for job in await job_rows.list_pinned_to_snapshots(session)
        if await _is_gone(session, job)
    ]
    failure = Failure(
        message=(
            "The snapshot that this job was to read was deleted while it waited. Submit it "
            "again with another one."
        )
    )
    for job in without_snapshot:
        await job_state.move(
            session,
            job,
            JobState.FAILED,
            TransitionDetails(actor=_ACTOR, cause=Cause.NO_RESULT, failure=failure),
        )
    return len(without_snapshot)


async def _is_gone(session: Session, job: JobRow) -> bool:
    snapshot = await snapshot_rows.find(session, str((job.evaluate or {})["snapshot"]))
    return snapshot is None or snapshot.state in {SnapshotState.DELETED, SnapshotState.SKIPPED}
