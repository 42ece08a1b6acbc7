"""Rows of attempts and of the runs they carry.

A lease is written and checked by the database's clock, in one statement.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Float,
    Table,
    and_,
    bindparam,
    exists,
    func,
    select,
    update,
)

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.models.projects import ProjectRow, UserRow
from app.db.models.snapshots import SnapshotRow
from app.db.models.workers import WorkerRow
from app.db.upsert import build_insert
from palestra.contract.states import (
    LIVE_ATTEMPT_STATES,
    AttemptState,
    Cause,
    Outcome,
    SnapshotState,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """The leases of all live attempts as the reaper sees them."""

    total: int
    lapsed: tuple[tuple[str, datetime], ...]
    """Attempts silent for longer than the limit, each with the time of its last renewal."""


async def insert(session: Session, row: dict[str, Any], lease_seconds: float) -> AttemptRow | None:
    """Adds an attempt; `None` if its slots or its job have a live one already."""
    statement = _insert_attempt(session.get_bind().dialect.name, tuple(row))
    added: AttemptRow | None = await session.scalar(
        statement, {**row, "lease_seconds": lease_seconds}
    )
    return added


# Built once: an insert with its values would be compiled at each claim.
@cache
def _insert_attempt(dialect: str, names: tuple[str, ...]) -> Any:
    table = cast("Table", AttemptRow.__table__)
    values: dict[str, Any] = {name: bindparam(name, type_=table.c[name].type) for name in names}
    lease: ColumnElement[float] = bindparam("lease_seconds", type_=Float())
    statement = (
        build_insert(dialect, table)
        .values(**values, lease_until=db_now(lease))
        .on_conflict_do_nothing()
        .returning(AttemptRow)
    )
    return select(AttemptRow).from_statement(statement)


async def insert_runs(
    session: Session, rows: list[dict[str, Any]]
) -> Sequence[AttemptRunRow] | None:
    """Adds the runs of an attempt; `None` if one of them has another live training attempt."""
    connection = await session.connection()
    statement = _insert_run(connection.dialect.name)
    for row in rows:
        if (await connection.execute(statement, row)).first() is None:
            return None
    return sorted((AttemptRunRow(**row) for row in rows), key=lambda carried: carried.run_id)


@cache
def _insert_run(dialect: str) -> Any:
    table = cast("Table", AttemptRunRow.__table__)
    return build_insert(dialect, table).on_conflict_do_nothing().returning(table.c.run_id)


async def find(session: Session, attempt_id: str, *, lock: bool = False) -> AttemptRow | None:
    """Returns an attempt; with `lock`, locked until the transaction ends."""
    query = (
        select(AttemptRow)
        .where(AttemptRow.id == attempt_id)
        .execution_options(populate_existing=True)
    )
    return await session.scalar(query.with_for_update() if lock else query)


async def load_runs(session: Session, attempt_ids: Iterable[str]) -> dict[str, list[AttemptRunRow]]:
    """Returns the runs that attempts carry."""
    wanted = tuple(attempt_ids)
    found: dict[str, list[AttemptRunRow]] = {attempt_id: [] for attempt_id in wanted}
    for row in await session.scalars(
        select(AttemptRunRow)
        .where(AttemptRunRow.attempt_id.in_(wanted))
        .order_by(AttemptRunRow.run_id)
    ):
        found[row.attempt_id].append(row)
    return found


async def renew(
    session: Session, attempt: AttemptRow, values: dict[str, Any], lease_seconds: float
) -> bool:
    """Renews the lease of a live attempt and stores its progress; `False` if it has ended."""
    live = (AttemptRow.id == attempt.id, AttemptRow.state.in_(LIVE_ATTEMPT_STATES))
    new = {
        **values,
        "state": AttemptState.RUNNING,
        "lease_until": db_now(lease_seconds),
        "renewed_at": db_now(),
    }
    statement = update(AttemptRow).where(*live).values(**new).returning(AttemptRow.id)
    renewed = (
        await session.execute(statement.execution_options(synchronize_session=False))
    ).first() is not None
    if renewed:
        await session.refresh(attempt)
    return renewed


async def restart_lease(session: Session, attempt: AttemptRow, lease_seconds: float) -> bool:
    """Restarts the lease of an attempt that no supervisor has renewed yet.

    `False` if a supervisor has renewed it, or the attempt has ended.
    """
    fresh = (AttemptRow.id == attempt.id, AttemptRow.state == AttemptState.STARTING)
    new = {"lease_until": db_now(lease_seconds), "renewed_at": db_now()}
    statement = update(AttemptRow).where(*fresh).values(**new).returning(AttemptRow.id)
    return (
        await session.execute(statement.execution_options(synchronize_session=False))
    ).first() is not None


def set_token(attempt: AttemptRow, token_hash: str) -> None:
    """Replaces the token of an attempt."""
    attempt.token_hash = token_hash


def set_snapshot(carried: AttemptRunRow, snapshot_id: str) -> None:
    """Sets the snapshot that an attempt reads of a run."""
    carried.snapshot_id = snapshot_id


def give_up_uploads(attempt: AttemptRow) -> None:
    """Notes that the worker shall end the attempt without the results that are not uploaded."""
    attempt.gives_up = True


async def list_silent_for_worker(
    session: Session, worker_id: str, state: AttemptState, seconds: float, *, since: datetime
) -> Sequence[AttemptRow]:
    """Returns a worker's live attempts in `state` that were not renewed for `seconds`.

    Attempts that were renewed after `since` are left out, however long ago that is.
    """
    query = select(AttemptRow).where(
        AttemptRow.worker_id == worker_id,
        AttemptRow.state == state,
        AttemptRow.renewed_at < db_now(-seconds),
        AttemptRow.renewed_at < since,
    )
    return (await session.scalars(query.order_by(AttemptRow.slot, AttemptRow.id))).all()


async def end(
    session: Session, attempt: AttemptRow, state: AttemptState, values: dict[str, Any]
) -> Sequence[AttemptRunRow] | None:
    """Ends a live attempt; returns the runs that it carried, `None` if it has ended already.

    Another training attempt of its runs can then begin.
    """
    live = (AttemptRow.id == attempt.id, AttemptRow.state.in_(LIVE_ATTEMPT_STATES))
    statement = (
        update(AttemptRow)
        .where(*live)
        .values(**values, state=state, ended_at=db_now())
        .returning(AttemptRow)
        .execution_options(synchronize_session=False, populate_existing=True)
    )
    if await session.scalar(statement) is None:
        return None
    return await _free_runs(session, attempt.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """What the end of an attempt depends on beside its own row."""

    worker_name: str
    environment: str | None
    """Environment of the experiment; `None` if it has none."""
    is_uploading: bool
    """Whether it has snapshots whose files have not all arrived."""


async def load_facts(session: Session, attempt_id: str) -> AttemptFacts:
    """Returns what the end of an attempt depends on."""
    values = {"attempt_id": attempt_id}
    worker_name, environment, is_uploading = (await session.execute(_select_facts(), values)).one()
    return AttemptFacts(
        worker_name=worker_name, environment=environment or None, is_uploading=is_uploading
    )


@cache
def _select_facts() -> Any:
    uploading = exists().where(
        SnapshotRow.attempt_id == AttemptRow.id, SnapshotRow.state == SnapshotState.UPLOADING
    )
    mine = and_(
        ExperimentRow.project_id == JobRow.project_id, ExperimentRow.id == JobRow.experiment_id
    )
    return (
        select(WorkerRow.name, ExperimentRow.env, uploading)
        .select_from(AttemptRow)
        .join(JobRow, JobRow.id == AttemptRow.job_id)
        .join(ExperimentRow, mine)
        .join(WorkerRow, WorkerRow.id == AttemptRow.worker_id)
        .where(AttemptRow.id == bindparam("attempt_id"))
    )


async def expire(
    session: Session, attempt_id: str, silent_seconds: float
) -> tuple[AttemptRow, Sequence[AttemptRunRow]] | None:
    """Marks a live attempt as lost if its lease was not renewed for `silent_seconds`.

    Returns it with the runs that it carried.
    """
    silent = (
        AttemptRow.id == attempt_id,
        AttemptRow.state.in_(LIVE_ATTEMPT_STATES),
        AttemptRow.renewed_at < db_now(-silent_seconds),
        AttemptRow.lease_until < db_now(),
    )
    lost = {
        "state": AttemptState.LOST,
        "outcome": Outcome.LOST,
        "cause": Cause.LEASE_EXPIRED,
        "ended_at": db_now(),
    }
    statement = update(AttemptRow).where(*silent).values(**lost).returning(AttemptRow)
    options = {"synchronize_session": False, "populate_existing": True}
    attempt = await session.scalar(statement.execution_options(**options))
    return None if attempt is None else (attempt, await _free_runs(session, attempt_id))


async def read_leases(session: Session, silent_seconds: float) -> Leases:
    """Returns the number of live leases, and the leases that have lapsed."""
    live = AttemptRow.state.in_(LIVE_ATTEMPT_STATES)
    total = await session.scalar(select(func.count()).select_from(AttemptRow).where(live))
    silent = (
        live,
        AttemptRow.renewed_at < db_now(-silent_seconds),
        AttemptRow.lease_until < db_now(),
    )
    lapsed = await session.execute(
        select(AttemptRow.id, AttemptRow.renewed_at)
        .where(*silent)
        .order_by(AttemptRow.renewed_at, AttemptRow.id)
    )
    return Leases(
        total=total or 0, lapsed=tuple((attempt_id, last_seen) for attempt_id, last_seen in lapsed)
    )


async def list_live_for_workers(
    session: Session, worker_ids: Collection[str]
) -> Sequence[AttemptRow]:
    """Returns the live attempts on the given workers."""
    query = select(AttemptRow).where(
        AttemptRow.worker_id.in_(worker_ids), AttemptRow.state.in_(LIVE_ATTEMPT_STATES)
    )
    return (await session.scalars(query.order_by(AttemptRow.slot, AttemptRow.id))).all()


async def load_submitters(
    session: Session, attempt_ids: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Returns, by attempt ID, the login name and the project slug of the attempt's job."""
    query = (
        select(AttemptRow.id, UserRow.name, ProjectRow.slug)
        .join(JobRow, JobRow.id == AttemptRow.job_id)
        .join(UserRow, UserRow.id == JobRow.created_by)
        .join(ProjectRow, ProjectRow.id == JobRow.project_id)
        .where(AttemptRow.id.in_(attempt_ids))
    )
    return {
        attempt_id: (user, project) for attempt_id, user, project in await session.execute(query)
    }


async def find_live_by_job(session: Session, job_id: str) -> AttemptRow | None:
    """Returns the live attempt of a job."""
    return await session.scalar(
        select(AttemptRow).where(
            AttemptRow.job_id == job_id, AttemptRow.state.in_(LIVE_ATTEMPT_STATES)
        )
    )


async def find_compile_mode(session: Session, run_ids: Sequence[str]) -> str | None:
    """Returns how updates ran in the latest training attempt of any of the runs that states it."""
    query = (
        select(AttemptRow.compile)
        .join(AttemptRunRow, AttemptRunRow.attempt_id == AttemptRow.id)
        .where(
            AttemptRunRow.run_id.in_(run_ids),
            AttemptRunRow.training,
            AttemptRow.compile.is_not(None),
        )
        .order_by(AttemptRow.started_at.desc(), AttemptRow.id.desc())
        .limit(1)
    )
    return await session.scalar(query)


async def load_backlogs_by_job(
    session: Session, job_ids: Collection[str]
) -> dict[str, dict[str, Any] | None]:
    """Returns what the live attempts of the given jobs have not uploaded, by job."""
    query = select(AttemptRow.job_id, AttemptRow.backlog).where(
        AttemptRow.job_id.in_(job_ids), AttemptRow.state.in_(LIVE_ATTEMPT_STATES)
    )
    return dict((await session.execute(query)).all())


async def _free_runs(session: Session, attempt_id: str) -> Sequence[AttemptRunRow]:
    """Permits another training attempt of an attempt's runs; returns these, by run ID."""
    statement = (
        update(AttemptRunRow)
        .where(AttemptRunRow.attempt_id == attempt_id)
        .values(live_training=False)
        .returning(AttemptRunRow)
        .execution_options(synchronize_session=False, populate_existing=True)
    )
    return sorted(await session.scalars(statement), key=lambda carried: carried.run_id)
