"""Explains to a user why a queued job has not started. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """What the workers of a pool offer and what is ahead in its queue."""

    name: str
    paused: str | None = None
    """Why the pool is paused; `None` if it is not."""
    registered: int = 0
    """Number of workers that ever registered."""
    workers: int = 0
    """Number of workers that are online and not draining."""
    slots: int = 0
    free_slots: int = 0
    most_gpus: int = 0
    """Largest number of GPUs of one such worker."""
    versions: frozenset[int] = frozenset()
    """Work order versions that the workers support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """The properties of a queued job that decide when it starts."""

    gpus: int
    version: int
    position: int
    delay_seconds: float
    """Seconds until the job may be dispatched; 0 if it may be now."""
    admitted: bool = True
    """Whether the pool admits the job's project."""
    held: bool = False
    """Whether it is a continuous evaluation without new snapshots whose training is not running."""


def explain(job: WaitingJob, pool: PoolFacts) -> str:
    """Returns one sentence that states what the job waits for."""
    return (
        _explain_refusal(job, pool)
        or _explain_missing_worker(job, pool)
        or _explain_delay(job, pool)
    )


def _explain_refusal(job: WaitingJob, pool: PoolFacts) -> str | None:
    if not job.admitted:
        return (
            f"The pool {pool.name} does not admit this project any more. Ask an administrator of "
            "the server, or cancel the job and submit it to another pool."
        )
    if pool.paused is not None:
        return f"The pool {pool.name} is paused, and starts no job until it is resumed: " + (
            pool.paused.rstrip(".") + "."
        )
    return None


def _explain_missing_worker(job: WaitingJob, pool: PoolFacts) -> str | None:
    if not pool.registered:
        return (
            f"No worker is registered in the pool {pool.name}. Start one: palestra worker "
            f"--pool {pool.name}"
        )
    if not pool.workers:
        return f"No worker of the pool {pool.name} takes jobs now: each is offline or draining."
    if job.gpus > pool.most_gpus:
        return (
            f"No worker of the pool {pool.name} offers {job.gpus} GPUs; the largest has "
            f"{pool.most_gpus}."
        )
    if job.version not in pool.versions:
        return (
            f"No worker of the pool {pool.name} speaks version {job.version} of the work "
            "order: upgrade the workers."
        )
    return None


def _explain_delay(job: WaitingJob, pool: PoolFacts) -> str:
    if job.delay_seconds > 0:
        return (
            f"Waits {job.delay_seconds:.0f} s more after a failure of the machine that it ran on."
        )
    if job.held:
        return (
            "Follows the training of its run, which is queued or paused and left no new "
            "snapshot: starts once that trains."
        )
    if not pool.free_slots:
        return (
            f"All {pool.slots} slots of the pool {pool.name} are busy; place {job.position} "
            "in the queue."
        )
    return "A worker was asked to start it."
