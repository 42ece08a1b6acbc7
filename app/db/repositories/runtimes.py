"""How long jobs held their slots: jobs that have ended, and jobs that hold one now."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, func, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of, is_any_pair
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import AttemptRow, JobRow, JobRunRow
from app.db.models.usage import UsageEntryRow
from app.db.repositories import job_queue
from app.domain.queue.runtimes import EndedJob, JobKind
from app.domain.queue.start_order import Group
from palestra.contract.names import Schedule
from palestra.contract.states import INFRASTRUCTURE_CAUSES, LIVE_ATTEMPT_STATES, JobState

MAX_ENDED: Final = 5_000
"""Latest jobs that are compared by definition, and as many by agent and environment."""

_RUNS: Final = (
    select(func.count())
    .select_from(JobRunRow)
    .where(JobRunRow.job_id == JobRow.id)
    .correlate(JobRow)
    .scalar_subquery()
)
_KIND_COLUMNS: Final = (
    JobRow.schedule,
    ExperimentRow.definition_hash,
    ExperimentRow.agent,
    ExperimentRow.env,
    ExperimentRow.definition,
    _RUNS.label("runs"),
)
_IS_OF_EXPERIMENT: Final = and_(
    ExperimentRow.project_id == JobRow.project_id, ExperimentRow.id == JobRow.experiment_id
)
_BUDGETS: Final = ("env_steps", "updates", "episodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentJob:
    """A job that is queued, assigned or live, with what decides how long it runs."""

    id: str
    kind: JobKind
    group: Group
    experiment_id: str
    devices: int
    slots: int
    """Slots of the worker that it is live on or assigned to."""
    wall_seconds: float | None
    attempt: int
    """Number of its latest attempt; 0 if it never began."""
    worker_id: str | None
    """The worker that it is live on or assigned to."""
    started_at: datetime | None
    """Start of its live attempt."""


async def list_present(
    session: Session, pool: str, queued: Collection[str]
) -> Sequence[PresentJob]:
    """Returns the jobs of a pool that hold a slot or are assigned, and some that are queued."""
    found = await _list_jobs(session, JobRow.pool == pool, job_queue.holds_devices())
    if queued:
        found += await _list_jobs(session, is_any_of(JobRow.id, queued))
    return list({job.id: job for job in found}.values())


async def _list_jobs(session: Session, *conditions: ColumnElement[bool]) -> list[PresentJob]:
    query = (
        select(
            JobRow.id,
            JobRow.experiment_id,
            JobRow.priority_class,
            JobRow.project_id,
            JobRow.created_by,
            JobRow.gpus,
            JobRow.limits,
            JobRow.attempt,
            JobRow.assigned_worker_id,
            JobRow.assigned_slots,
            AttemptRow.worker_id,
            AttemptRow.slot_count,
            AttemptRow.started_at,
            *_KIND_COLUMNS,
        )
        .join(ExperimentRow, _IS_OF_EXPERIMENT)
        .outerjoin(
            AttemptRow, (AttemptRow.job_id == JobRow.id) & AttemptRow.state.in_(LIVE_ATTEMPT_STATES)
        )
        .where(*conditions)
    )
    return [
        PresentJob(
            id=row.id,
            kind=_kind_of(row),
            group=Group(row.priority_class, row.project_id, row.created_by),
            experiment_id=row.experiment_id,
            devices=max(1, row.gpus),
            slots=row.slot_count or row.assigned_slots,
            wall_seconds=row.limits.get("wall_seconds"),
            attempt=row.attempt,
            worker_id=row.worker_id or row.assigned_worker_id,
            started_at=row.started_at,
        )
        for row in await session.execute(query)
    ]


def build_kind(
    *,
    definition_hash: str,
    agent: str,
    environment: str,
    definition: str,
    schedule: Schedule,
    runs: int,
) -> JobKind:
    """Returns the kind of a job on an experiment.

    Args:
        definition_hash: Hash of the experiment's definition.
        agent: Name of its agent.
        environment: Its environment.
        definition: Its definition as canonical JSON, for the budget.
        schedule: Schedule of the job.
        runs: Number of runs of the job.
    """
    unit, budget = _read_budget(definition)
    return JobKind(
        definition_hash=definition_hash,
        agent=agent,
        environment=environment,
        schedule=schedule,
        runs=runs,
        unit=unit,
        budget=budget,
    )


@lru_cache(1_024)
def _read_budget(definition: str) -> tuple[str, float]:
    """Returns unit and size of the budget of a definition; an empty unit without one."""
    loop: Mapping[str, Any] = json.loads(definition).get("loop") or {}
    unit = next((name for name in _BUDGETS if loop.get(name)), "")
    return unit, float(loop[unit]) if unit else 1.0


async def sum_used_seconds(session: Session, job_ids: Collection[str]) -> dict[str, float]:
    """Returns the seconds for which jobs held slots in ended attempts, without lost time."""
    if not job_ids:
        return {}
    found: dict[str, float] = {}
    query = select(UsageEntryRow.job_id, UsageEntryRow.started_at, UsageEntryRow.ended_at).where(
        is_any_of(UsageEntryRow.job_id, job_ids), UsageEntryRow.kind == "used"
    )
    for job_id, start, end in await session.execute(query):
        found[job_id] = found.get(job_id, 0.0) + (end - start).total_seconds()
    return found


async def list_ended(session: Session, pool: str, kinds: Collection[JobKind]) -> list[EndedJob]:
    """Returns the latest ended jobs of a pool that are similar to some kinds, the latest first.

    Those with the same definition, and those with the same agent and environment. Jobs that
    somebody cancelled and those that infrastructure ended count as stopped before their end.
    """
    if not kinds:
        return []
    hashes = {kind.definition_hash for kind in kinds}
    pairs = {(kind.environment, kind.agent) for kind in kinds}
    found: dict[str, Any] = {}
    for matches in (
        is_any_of(ExperimentRow.definition_hash, hashes),
        is_any_pair(ExperimentRow.env, ExperimentRow.agent, pairs),
    ):
        found |= await _load_ended(session, pool, matches)
    seconds = await sum_used_seconds(session, found)
    rows = sorted(found.values(), key=lambda row: row.finished_at, reverse=True)
    return [
        EndedJob(_kind_of(row), seconds[row.id], _end_of(row)) for row in rows if row.id in seconds
    ]


async def _load_ended(session: Session, pool: str, matches: ColumnElement[bool]) -> dict[str, Any]:
    query = (
        select(JobRow.id, JobRow.state, JobRow.cause, JobRow.finished_at, *_KIND_COLUMNS)
        .join(ExperimentRow, _IS_OF_EXPERIMENT)
        .where(matches, JobRow.pool == pool, JobRow.finished_at.is_not(None))
        .order_by(JobRow.finished_at.desc())
        .limit(MAX_ENDED)
    )
    return {row.id: row for row in await session.execute(query)}


def _kind_of(row: Any) -> JobKind:
    return build_kind(
        definition_hash=row.definition_hash,
        agent=row.agent,
        environment=row.env,
        definition=row.definition,
        schedule=row.schedule,
        runs=row.runs,
    )


def _end_of(row: Any) -> str:
    if row.state == JobState.SUCCEEDED:
        return "succeeded"
    is_own = row.state == JobState.FAILED and row.cause not in INFRASTRUCTURE_CAUSES
    return "failed" if is_own else "stopped"
