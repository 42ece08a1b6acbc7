"""Says why a queued job has not started. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from app.domain.queue.holds import Hold, HoldReason
from app.domain.queue.windows import PlannedWindow, describe
from palestra.contract.queue import WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """State, workers and slots of a pool, on which the waiting of its jobs depends."""

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
class KeptSlots:
    """Slots of a worker that are kept for a job that needs several."""

    worker: str
    """Name of the worker."""
    start: datetime | None
    """When that job can start there at the latest; `None` if that is not known."""
    job_id: str | None = None
    """That job; `None` if it may not be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """The properties of a queued job that decide when it starts."""

    gpus: int
    version: int
    slots: int = 0
    """Slots of the workers that could take it, of those that are online and not draining."""
    free_slots: int = 0
    delay_seconds: float = 0.0
    """Seconds until the job may be dispatched; 0 if it may be now."""
    is_admitted: bool = True
    """Whether the pool admits the job's project."""
    is_idle_evaluation: bool = False
    """Whether it is a continuous evaluation without new snapshots whose training is not running."""
    is_assigned: bool = False
    """Whether a worker was told to start it."""
    has_other_interactive: bool = False
    """Whether it is interactive and its person has another interactive job."""
    waits_for: tuple[str, ...] = ()
    """IDs of the jobs that have to end before it."""
    needs_success: bool = True
    """Whether those jobs have to succeed."""
    hold: Hold | None = None
    """Why it could not start now even on a free slot, if the decision says so."""
    window: PlannedWindow | None = None
    """The first window, planned or begun, that is not for the job and takes a worker that could
    take it."""
    kept: KeptSlots | None = None
    """Slots that are kept for it, or for another job while it could use them; see `hold`."""
    ahead: int | None = None
    """Number of jobs that start before it and compete with it; `None` if that is not known."""
    ahead_is_cut: bool = False
    """Whether `ahead` is a lower bound."""


_HELD: Final[Mapping[HoldReason, str]] = {
    HoldReason.NO_FITTING_WORKER: "No single worker that is online has its GPUs and executes its "
    "version of the work order.",
    HoldReason.NOT_FREE_LONG_ENOUGH: "A maintenance window or a reservation begins before its time "
    "limit on every worker that could take it: starts after that, or before with a shorter "
    "limits.wall_seconds.",
    HoldReason.SLOTS_BUSY: "Waits for a slot.",
    HoldReason.INTERACTIVE_LIMIT: "Each person has one interactive job at a time: starts once the "
    "other one has ended.",
    HoldReason.EXPERIMENT_LIMIT: "As many jobs of its experiment run as its limit permits: starts "
    "once one of them has ended, or the limit is raised.",
    HoldReason.PERSON_LIMIT: "As many jobs of its person run in this project as permitted: starts "
    "once one of them has ended.",
    HoldReason.PROJECT_LIMIT: "As many jobs of its project run as permitted: starts once one of "
    "them has ended.",
    HoldReason.DEVICE_HOURS: "The device-hours of its person or its project are used up: starts "
    "once enough of them are older than the period of the quota.",
    HoldReason.RESERVED: "The free slots that it could use are kept for a job before it that needs "
    "several: starts there after that job, or before with a short limits.wall_seconds.",
}


_MAX_NAMED: Final = 5


class Waiting(NamedTuple):
    """The reason why a job waits, as a code and as a sentence with the numbers."""

    reason: WaitReason
    sentence: str


def explain(job: WaitingJob, pool: PoolFacts) -> Waiting:
    """Returns why a job waits: the first reason that applies, checked from lasting to temporary."""
    return (
        _not_permitted(job, pool) or _too_early(job) or _no_worker(job, pool) or _not_yet(job, pool)
    )


def _too_early(job: WaitingJob) -> Waiting | None:
    if not job.waits_for:
        return None
    first, *others = job.waits_for
    named = (
        f"the job {first}" if not others else f"the jobs {', '.join(job.waits_for[:_MAX_NAMED])}"
    )
    more = len(job.waits_for) - _MAX_NAMED
    more_named = f" and {more} more" if more > 0 else ""
    verb = "has" if not others else "have"
    end = "succeeded" if job.needs_success else "ended"
    return Waiting(WaitReason.DEPENDENCY, f"Starts once {named}{more_named} {verb} {end}.")


def _not_permitted(job: WaitingJob, pool: PoolFacts) -> Waiting | None:
    if not job.is_admitted:
        return Waiting(
            WaitReason.PROJECT_NOT_ADMITTED,
            f"The pool {pool.name} does not admit this project any more. Ask an administrator of "
            "the server, or cancel the job and submit it to another pool.",
        )
    if pool.paused is not None:
        return Waiting(
            WaitReason.POOL_PAUSED,
            f"The pool {pool.name} is paused, and starts no job until it is resumed: "
            f"{pool.paused.rstrip('.')}.",
        )
    return None


def _no_worker(job: WaitingJob, pool: PoolFacts) -> Waiting | None:
    if not pool.registered:
        return Waiting(
            WaitReason.NO_WORKER_REGISTERED,
            f"No worker is registered in the pool {pool.name}. Start one: palestra worker "
            f"--pool {pool.name}",
        )
    if not pool.workers:
        return Waiting(
            WaitReason.NO_WORKER_ONLINE,
            f"No worker of the pool {pool.name} takes jobs now: each is offline or draining.",
        )
    if job.gpus > pool.most_gpus:
        return Waiting(
            WaitReason.TOO_MANY_GPUS,
            f"No worker of the pool {pool.name} offers {job.gpus} GPUs; the largest has "
            f"{pool.most_gpus}.",
        )
    if job.version not in pool.versions:
        return Waiting(
            WaitReason.WORK_ORDER_VERSION,
            f"No worker of the pool {pool.name} speaks version {job.version} of the work "
            "order: upgrade the workers.",
        )
    return None


def _not_yet(job: WaitingJob, pool: PoolFacts) -> Waiting:
    if job.delay_seconds > 0:
        return Waiting(
            WaitReason.DELAYED,
            f"Waits {job.delay_seconds:.0f} s more after a failure of the machine that it ran on.",
        )
    if job.is_idle_evaluation:
        return Waiting(
            WaitReason.FOLLOWS_TRAINING,
            "Follows the training of its run, which is queued or paused and left no new "
            "snapshot: starts once that trains.",
        )
    if job.is_assigned:
        return Waiting(WaitReason.ASSIGNED, "A worker was asked to start it.")
    if job.has_other_interactive:
        return _held(HoldReason.INTERACTIVE_LIMIT)
    if job.hold is not None:
        return _held(job.hold.reason, job.window, job.kept)
    return _behind(job, pool)


def _describe_kept(reason: HoldReason, kept: KeptSlots) -> str:
    if reason is not HoldReason.RESERVED:
        when = (
            "how long the others are busy is not known, since a job there has no time limit"
            if kept.start is None
            else f"it starts there by {kept.start:%Y-%m-%d %H:%M} UTC at the latest"
        )
        return (
            "Needs several slots of one worker at the same time: free slots of the worker "
            f"{kept.worker} are kept for it, and {when}."
        )
    named = f"the job {kept.job_id}" if kept.job_id else "a job of another project"
    until = (
        "when that starts is not known. Starts after that job."
        if kept.start is None
        else f"that starts there by {kept.start:%Y-%m-%d %H:%M} UTC at the latest. Starts after "
        "that job, or before it with a limits.wall_seconds that ends by then."
    )
    return (
        f"The free slots of the worker {kept.worker} that it could use are kept for {named}, "
        f"which needs several: {until}"
    )


def _held(
    reason: HoldReason, window: PlannedWindow | None = None, kept: KeptSlots | None = None
) -> Waiting:
    sentence = _HELD[reason]
    if kept is not None:
        sentence = _describe_kept(reason, kept)
    elif reason is HoldReason.NOT_FREE_LONG_ENOUGH and window is not None:
        sentence = (
            f"{describe(window)}: starts after that, or before on a worker that is free until its "
            "limits.wall_seconds have passed."
        )
    return Waiting(WaitReason(reason), sentence)


def _behind(job: WaitingJob, pool: PoolFacts) -> Waiting:
    part = "" if job.slots == pool.slots else " that it could use"
    busy = f"All {job.slots} slots of the pool {pool.name}{part} are busy"
    busy = "" if job.free_slots else busy
    if job.ahead:
        more = "more than " if job.ahead_is_cut else ""
        behind = f"{more}{job.ahead:,} {'job starts' if job.ahead == 1 else 'jobs start'} before it"
        return Waiting(WaitReason.BEHIND_JOBS, _sentence(busy, behind))
    if job.ahead is None or busy:
        return Waiting(WaitReason.SLOTS_BUSY, _sentence(busy or "Waits for a slot", ""))
    return Waiting(
        WaitReason.STARTS_NOW, "A slot is free for it: a worker is asked to start it next."
    )


def _sentence(*parts: str) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."
