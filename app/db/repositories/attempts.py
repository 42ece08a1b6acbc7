"""Rows of attempts and of the runs they carry. A lease is written and judged by the database's clock, check and act in one statement."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func, select, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import Run
from app.db.models.jobs import Attempt, AttemptRun
from app.db.upsert import insert_new
from palestra.contract.states import AttemptState, Cause, Outcome

LIVE: Final = (AttemptState.STARTING.value, AttemptState.RUNNING.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """The leases of all live attempts as the reaper sees them."""

    total: int
    lapsed: tuple[tuple[str, datetime], ...]
    """Attempts that were silent for longer than the limit, each with its last sign of life."""


async def insert(session: Session, row: dict[str, Any], lease_seconds: float) -> Attempt | None:
    """Adds an attempt; `None` if its slot or its job has a live one already."""
    values = {**row, "lease_until": db_now(lease_seconds)}
    added = (await session.execute(insert_new(session, Attempt, [values]).returning(Attempt.id))).first()
    return None if added is None else await session.get(Attempt, row["id"])


async def insert_runs(session: Session, rows: list[dict[str, Any]]) -> bool:
    """Adds the runs of an attempt; `False` if one of them has another live training attempt."""
    added = (await session.execute(insert_new(session, AttemptRun, rows).returning(AttemptRun.run_id))).all()
    return len(added) == len(rows)


async def raise_fences(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Raises the fence of runs by one; returns the new ones. The rows stay locked until the transaction ends."""
    statement = update(Run).where(Run.id.in_(run_ids)).values(fence=Run.fence + 1).returning(Run.id, Run.fence)
    return dict((await session.execute(statement.execution_options(synchronize_session=False))).all())


async def get(session: Session, attempt_id: str, *, lock: bool = False) -> Attempt | None:
    """Returns an attempt; locked against other changes until the transaction ends where asked."""
    query = select(Attempt).where(Attempt.id == attempt_id).execution_options(populate_existing=True)
    return await session.scalar(query.with_for_update() if lock else query)


async def runs_of(session: Session, attempt_ids: Iterable[str]) -> dict[str, list[AttemptRun]]:
    """Returns the runs that attempts carry."""
    wanted = tuple(attempt_ids)
    found: dict[str, list[AttemptRun]] = {attempt_id: [] for attempt_id in wanted}
    for row in await session.scalars(select(AttemptRun).where(AttemptRun.attempt_id.in_(wanted)).order_by(AttemptRun.run_id)):
        found[row.attempt_id].append(row)
    return found


async def renew(session: Session, attempt: Attempt, values: dict[str, Any], lease_seconds: float) -> bool:
    """Renews the lease of a live attempt and notes its progress; `False` if it has ended."""
    live = (Attempt.id == attempt.id, Attempt.state.in_(LIVE))
    new = {**values, "state": AttemptState.RUNNING.value, "lease_until": db_now(lease_seconds), "renewed_at": db_now()}
    statement = update(Attempt).where(*live).values(**new).returning(Attempt.id)
    renewed = (await session.execute(statement.execution_options(synchronize_session=False))).first() is not None
    if renewed:
        await session.refresh(attempt)
    return renewed


async def begin_lease_anew(session: Session, attempt: Attempt, lease_seconds: float) -> bool:
    """Starts the lease of an attempt that no supervisor has renewed from the present moment; `False` if one has, or it has ended."""
    fresh = (Attempt.id == attempt.id, Attempt.state == AttemptState.STARTING.value)
    new = {"lease_until": db_now(lease_seconds), "renewed_at": db_now()}
    statement = update(Attempt).where(*fresh).values(**new).returning(Attempt.id)
    return (await session.execute(statement.execution_options(synchronize_session=False))).first() is not None


async def silent_on(session: Session, worker_id: str, state: AttemptState, seconds: float) -> Sequence[Attempt]:
    """Returns a worker's live attempts in `state` that were claimed or renewed more than `seconds` ago."""
    query = select(Attempt).where(Attempt.worker_id == worker_id, Attempt.state == state.value, Attempt.renewed_at < db_now(-seconds))
    return (await session.scalars(query.order_by(Attempt.slot, Attempt.id))).all()


async def end(session: Session, attempt: Attempt, state: AttemptState, values: dict[str, Any]) -> bool:
    """Ends a live attempt; `False` if it has ended already. Its runs are free for another training attempt from then on."""
    live = (Attempt.id == attempt.id, Attempt.state.in_(LIVE))
    statement = update(Attempt).where(*live).values(**values, state=state.value, ended_at=db_now()).returning(Attempt.id)
    if (await session.execute(statement.execution_options(synchronize_session=False))).first() is None:
        return False
    await _free_runs(session, attempt.id)
    await session.refresh(attempt)
    return True


async def expire(session: Session, attempt_id: str, silent_seconds: float) -> Attempt | None:
    """Ends a live attempt as lost if it is silent for that long by the database's clock at this very moment."""
    silent = (
        Attempt.id == attempt_id,
        Attempt.state.in_(LIVE),
        Attempt.renewed_at < db_now(-silent_seconds),
        Attempt.lease_until < db_now(),
    )
    lost = {
        "state": AttemptState.LOST.value,
        "outcome": Outcome.LOST.value,
        "cause": Cause.LEASE_EXPIRED.value,
        "ended_at": db_now(),
    }
    statement = update(Attempt).where(*silent).values(**lost).returning(Attempt.id)
    if (await session.execute(statement.execution_options(synchronize_session=False))).first() is None:
        return None
    await _free_runs(session, attempt_id)
    return await get(session, attempt_id)


async def leases(session: Session, silent_seconds: float) -> Leases:
    """Returns how many leases there are and which lapsed."""
    live = Attempt.state.in_(LIVE)
    total = await session.scalar(select(func.count()).select_from(Attempt).where(live))
    silent = (live, Attempt.renewed_at < db_now(-silent_seconds), Attempt.lease_until < db_now())
    lapsed = await session.execute(select(Attempt.id, Attempt.renewed_at).where(*silent).order_by(Attempt.renewed_at, Attempt.id))
    return Leases(total=total or 0, lapsed=tuple((attempt_id, heard) for attempt_id, heard in lapsed))


async def live_on(session: Session, worker_ids: Collection[str]) -> Sequence[Attempt]:
    """Returns the live attempts on some workers."""
    query = select(Attempt).where(Attempt.worker_id.in_(worker_ids), Attempt.state.in_(LIVE))
    return (await session.scalars(query.order_by(Attempt.slot, Attempt.id))).all()


async def live_of_job(session: Session, job_id: str) -> Attempt | None:
    """Returns the live attempt of a job."""
    return await session.scalar(select(Attempt).where(Attempt.job_id == job_id, Attempt.state.in_(LIVE)))


async def backlogs_of_jobs(session: Session, job_ids: Collection[str]) -> dict[str, dict[str, Any] | None]:
    """Returns what the live attempts of some jobs have not uploaded."""
    query = select(Attempt.job_id, Attempt.backlog).where(Attempt.job_id.in_(job_ids), Attempt.state.in_(LIVE))
    return dict((await session.execute(query)).all())


async def backlogs_of_runs(session: Session, run_ids: Collection[str]) -> dict[str, dict[str, Any] | None]:
    """Returns what the live attempts that train some runs have not uploaded."""
    query = select(AttemptRun.run_id, Attempt.backlog).join(Attempt, Attempt.id == AttemptRun.attempt_id)
    return dict((await session.execute(query.where(AttemptRun.run_id.in_(run_ids), AttemptRun.live_training))).all())


async def _free_runs(session: Session, attempt_id: str) -> None:
    statement = update(AttemptRun).where(AttemptRun.attempt_id == attempt_id, AttemptRun.live_training).values(live_training=False)
    await session.execute(statement.execution_options(synchronize_session=False))
