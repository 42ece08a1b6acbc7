"""The slots of a worker that a claim names."""

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as rows
from app.db.repositories import workers as worker_rows
from app.domain.errors import ConflictError, InvalidError
from palestra.contract.work_order import Claim


def list_slots(attempt: AttemptRow) -> tuple[int, ...]:
    """Returns all slots of an attempt, `slot` first."""
    return (attempt.slot, *(attempt.further_slots or ()))


async def check_slots(session: Session, worker: WorkerRow, body: Claim) -> None:
    """Checks that a worker has the slots of a claim.

    Locks the worker where attempts may have several slots, until the transaction ends: `check_free`
    then sees the attempts of all its other claims. The worker is locked before the job, as by a
    heartbeat.

    Raises:
        InvalidError: `unknown_slot` if the worker has no such slot; `repeated_slot` if the claim
            names a slot twice.
    """
    slots = (body.slot, *body.further_slots)
    for pointer, slot in zip(_pointers(body), slots, strict=True):
        if slot >= worker.slots:
            raise InvalidError(
                "unknown_slot",
                f"This worker has no slot {slot}: its slots are 0 to {worker.slots - 1}.",
                pointer=pointer,
            )
    if len(set(slots)) < len(slots):
        raise InvalidError(
            "repeated_slot", "The claim names a slot twice.", pointer="/further_slots"
        )
    if _may_share(worker):
        await worker_rows.lock(session, worker.id)


def check_number(job: JobRow, body: Claim) -> None:
    """Checks that a claim has as many slots as were assigned.

    Raises:
        ConflictError: `not_assigned` if it has not: its dispatch message is out of date.
    """
    if 1 + len(body.further_slots) != job.assigned_slots:
        raise ConflictError(
            "not_assigned",
            "The job is assigned another number of slots than this claim has. Drop the dispatch "
            "message.",
        )


async def check_free(session: Session, worker: WorkerRow, body: Claim) -> None:
    """Checks that no live attempt with several slots has a slot of a claim, nor the reverse.

    Attempts with the same first slot are found when the attempt is stored, by an index.

    Raises:
        ConflictError: `slot_busy`, with the slots as `busy_slots`.
    """
    if not _may_share(worker):
        return
    taken = {
        slot
        for attempt in await rows.list_live_for_workers(session, [worker.id])
        for slot in list_slots(attempt)
    }
    busy = sorted(taken.intersection((body.slot, *body.further_slots)))
    if busy:
        raise busy_error(busy)


def busy_error(slots: list[int]) -> ConflictError:
    """Returns the refusal of a claim of slots that have an attempt."""
    return ConflictError(
        "slot_busy",
        "A slot of this claim has an attempt that has not ended. Report it as dead if it is, then "
        "claim again.",
        busy_slots=slots,
    )


def _may_share(worker: WorkerRow) -> bool:
    """Returns whether attempts of a worker may have several slots."""
    return worker.takes_several_slots and worker.slots > 1 and worker.gpu_count > 1


def _pointers(body: Claim) -> list[str]:
    return ["/slot", *(f"/further_slots/{index}" for index in range(len(body.further_slots)))]
