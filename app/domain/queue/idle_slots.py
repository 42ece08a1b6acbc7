"""Counts the free slots of a pool beside waiting jobs that fit them. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.queue.placement import WorkerOffer


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """Queued jobs with the same needs."""

    gpus: int
    version: int
    """Version of their work orders."""
    jobs: int


def count_idle_beside_waiting(
    workers: Iterable[WorkerOffer], waiting: Iterable[WaitingJobs]
) -> int:
    """Returns how many free slots waiting jobs would take if only missing slots held them back.

    One waiting job that takes one slot beside eight free ones makes one slot idle, not eight.
    """
    offers = sorted(workers, key=lambda worker: worker.gpus)
    free = {worker.worker_id: worker.free_slots for worker in offers}
    found = 0
    # Jobs with more GPUs fit fewer workers, and take their slots first.
    for need in sorted(waiting, key=lambda one: one.gpus, reverse=True):
        left = need.jobs
        for worker in offers:
            if worker.gpus < need.gpus or need.version not in worker.versions:
                continue
            each = worker.count_slots(need.gpus)
            started = min(left, free[worker.worker_id] // each)
            free[worker.worker_id] -= started * each
            left -= started
            found += started * each
    return found
