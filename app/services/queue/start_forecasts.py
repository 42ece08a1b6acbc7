"""Forecasts of a pool: when its waiting jobs start, and how well earlier forecasts were."""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from app.db.engine import Session
from app.db.models.start_estimates import StartEstimateRow
from app.db.repositories import runtimes
from app.db.repositories import start_estimates as rows
from app.db.repositories.runtimes import PresentJob
from app.domain.queue.decision import PoolState
from app.domain.queue.runtimes import JobKind, RuntimeModels
from app.domain.queue.start_order import ExperimentKey
from app.domain.queue.start_simulation import (
    JobRuntime,
    LiveJob,
    Simulated,
    StartInterval,
    estimate_starts,
)
from palestra.contract.queue import StartEstimate

DRAWS: Final = 48
"""Simulations of one forecast."""
_MAX_SECONDS: Final = 4.0
"""Longest time of one forecast, apart from its first eight simulations."""
_SEED: Final = 18
_FARTHEST: Final = timedelta(days=366)

NO_RUNTIME: Final = (
    "Its start is unknown: jobs that hold slots or start before it are of a kind of which fewer "
    "than two have ended in this pool, so nobody knows how long they take."
)
NEVER: Final = (
    "Its start is unknown: as things are, nothing that is known to happen lets it start. The "
    "reason why it waits says what has to change."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When jobs of a pool start."""

    made_at: datetime
    starts: Mapping[str, StartInterval]
    """By job ID."""
    is_runtime_missing: bool
    """Whether a job is simulated that holds its slot for ever, since no runtime is known."""

    def build_view(self, job_id: str) -> StartEstimate:
        """Returns the estimate of a job as an answer."""
        return StartEstimate.model_validate(self.columns(job_id))

    def columns(self, job_id: str) -> dict[str, Any]:
        """Returns the estimate of a job as columns."""
        found = self.starts[job_id]
        known = found.is_known and timedelta(seconds=found.latest) < _FARTHEST
        times = (
            [self.made_at + timedelta(seconds=one) for one in (
                found.earliest, found.median, found.latest
            )]
            if known
            else [None, None, None]
        )  # fmt: skip
        return {
            "made_at": self.made_at,
            **dict(zip(("earliest", "median", "latest"), times, strict=True)),
            "unknown": None if known else NO_RUNTIME if self.is_runtime_missing else NEVER,
        }


async def load_pool(
    session: Session,
    pool: str,
    state: PoolState,
    further: Mapping[str, tuple[JobKind, int | None]] | None = None,
) -> Simulated:
    """Returns the state of a pool that a simulation needs.

    Args:
        session: A session.
        pool: Name of the pool.
        state: Its state, with the queued jobs to simulate.
        further: By ID, kind and time limit of jobs in the state that are not stored.
    """
    added = further or {}
    queued = [job.id for heads in state.heads.values() for job in heads.jobs if job.id not in added]
    are_queued = frozenset(queued)
    present = await runtimes.list_present(session, pool, queued)
    kinds = {job.kind for job in present} | {kind for kind, _ in added.values()}
    models = RuntimeModels(await runtimes.list_ended(session, pool, kinds))
    used = await runtimes.sum_used_seconds(session, [job.id for job in present if job.attempt])
    now = state.shares.now
    known = {job.id: _runtime(job, models, used.get(job.id, 0.0), now) for job in present}
    return Simulated(
        state=state,
        live=[
            LiveJob(
                worker_id=job.worker_id,
                group=job.group,
                experiment=ExperimentKey(job.group.project_id, job.experiment_id),
                devices=job.devices,
                slots=job.slots,
                runtime=known[job.id],
            )
            for job in present
            if job.worker_id is not None and job.id not in are_queued
        ],
        runtimes=known
        | {
            job_id: JobRuntime(model=models.find(kind), limit=limit)
            for job_id, (kind, limit) in added.items()
        },
    )


def _runtime(job: PresentJob, models: RuntimeModels, used: float, now: datetime) -> JobRuntime:
    elapsed = 0.0 if job.started_at is None else (now - job.started_at).total_seconds()
    limit = None if job.wall_seconds is None else max(0.0, job.wall_seconds - elapsed)
    return JobRuntime(model=models.find(job.kind), elapsed=used + max(0.0, elapsed), limit=limit)


async def forecast(
    simulated: Simulated, wanted: Collection[str], most_seconds: float = _MAX_SECONDS
) -> Forecast:
    """Simulates a pool in a thread; the more its jobs, the fewer simulations.

    Args:
        simulated: The pool.
        wanted: IDs of the jobs whose start is estimated.
        most_seconds: Longest time, apart from the first eight simulations.
    """
    end = time.monotonic() + most_seconds
    starts = await asyncio.to_thread(
        estimate_starts,
        simulated,
        wanted,
        draws=DRAWS,
        seed=_SEED,
        is_late=lambda: time.monotonic() > end,
    )
    everything: Iterable[JobRuntime] = (
        *(live.runtime for live in simulated.live),
        *simulated.runtimes.values(),
    )
    return Forecast(
        made_at=simulated.state.shares.now,
        starts=starts,
        is_runtime_missing=any(one.model is None and one.limit is None for one in everything),
    )


def choose_changed(
    pool: str, made: Forecast, known: Mapping[str, StartEstimateRow]
) -> list[dict[str, Any]]:
    """Returns the rows to store: new estimates, and those that changed noticeably."""
    return [
        row
        for job_id in made.starts
        if (row := _row(pool, job_id, made, known.get(job_id))) is not None
    ]


def _row(
    pool: str, job_id: str, made: Forecast, known: StartEstimateRow | None
) -> dict[str, Any] | None:
    found = made.columns(job_id)
    if known is not None and not _is_changed(known, found):
        return None
    names = ("made_at", "earliest", "median", "latest")
    if known is not None and known.first_made_at is not None:
        first = {f"first_{name}": getattr(known, f"first_{name}") for name in names}
    elif found["median"] is not None:
        first = {f"first_{name}": found[name] for name in names}
    else:
        first = {f"first_{name}": None for name in names}
    return {"job_id": job_id, "pool": pool, **found, **first, "started_at": None}


def _is_changed(known: StartEstimateRow, found: Mapping[str, Any]) -> bool:
    if known.unknown != found["unknown"]:
        return True
    for name in ("earliest", "median", "latest"):
        before, after = getattr(known, name), found[name]
        if before is None or after is None:
            if before is not after:
                return True
            continue
        wait = (after - found["made_at"]).total_seconds()
        if abs((after - before).total_seconds()) > max(2.0, 0.02 * wait):
            return True
    return False


async def store(session: Session, pool: str, made: Forecast) -> int:
    """Stores a forecast and the starts since the last one; returns the number of rows written."""
    await rows.note_starts(session, pool)
    known = await rows.list_open(session, pool)
    changed = choose_changed(pool, made, known)
    await rows.store(session, changed)
    return len(changed)
