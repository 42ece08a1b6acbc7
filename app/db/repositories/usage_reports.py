"""Sums of the ledger of device usage, and what live attempts have used so far."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, case, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Float

from app.db.clock import Timestamp
from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.usage import UsageEntryRow
from app.domain.usage_periods import IntervalSum, UsagePeriod, measure
from palestra.contract.states import LIVE_ATTEMPT_STATES

USED: Final = "used"
LOST: Final = "lost"

KEYS: Final = ("project", "user", "experiment", "environment", "pool")
"""What usage can be grouped by, in the order of the columns below."""

_OF_ENTRIES: Final[dict[str, Any]] = {
    "project": UsageEntryRow.project_id,
    "user": UsageEntryRow.user_id,
    "experiment": UsageEntryRow.experiment_id,
    "environment": UsageEntryRow.environment,
    "pool": UsageEntryRow.pool,
}
_OF_LIVE: Final[dict[str, Any]] = {
    "project": JobRow.project_id,
    "user": JobRow.created_by,
    "experiment": JobRow.experiment_id,
    "environment": ExperimentRow.env,
    "pool": JobRow.pool,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilter:
    """Filter of the entries to sum; a member that is `None` takes all."""

    project_ids: Collection[str] | None = None
    user_id: str | None = None
    experiment_id: str | None = None
    environment: str | None = None
    pools: Collection[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSum:
    """Intervals of one kind of a group."""

    key: tuple[str | None, ...]
    """Values of the columns by which is grouped."""
    kind: str
    is_gpu: bool
    interval: IntervalSum


async def sum_usage(
    session: Session, by: Sequence[str], wanted: UsageFilter, period: UsagePeriod, now: datetime
) -> list[GroupSum]:
    """Sums the usage within a period: entries of the ledger, and live attempts until now.

    Args:
        session: A reading session.
        by: Some of `KEYS`.
        wanted: Filter of the usage to sum.
        period: The period.
        now: Until when live attempts are counted. They count as used, though the ledger may book
            a part as lost at their end.
    """
    return [
        *await _sum_entries(session, by, wanted, period),
        *await _list_live(session, by, wanted, period, now),
    ]


async def _sum_entries(
    session: Session, by: Sequence[str], wanted: UsageFilter, period: UsagePeriod
) -> list[GroupSum]:
    origin, width = period.origin, period.width
    started, ended = UsageEntryRow.started_at, UsageEntryRow.ended_at
    start = _SecondsAfter(
        case((started < period.since, _time(period.since)), else_=started), origin
    )
    end = _SecondsAfter(case((ended > period.until, _time(period.until)), else_=ended), origin)
    keys = [_OF_ENTRIES[name].label(f"key_{name}") for name in by]
    inner = (
        select(
            *keys,
            UsageEntryRow.kind,
            UsageEntryRow.is_gpu,
            UsageEntryRow.devices,
            start.label("start"),
            end.label("end"),
            _Floor(start / width).label("first"),
            _Floor((end - 1e-6) / width).label("last"),
        )
        .where(started < period.until, ended > period.since, *_conditions(_OF_ENTRIES, wanted))
        .subquery()
    )
    columns = inner.c
    groups = [*(columns[key.name] for key in keys), columns.kind, columns.is_gpu]
    devices = columns.devices
    query = select(
        *groups,
        columns.first,
        columns.last,
        func.sum(devices),
        func.sum(devices * (columns.end - columns.start)),
        func.sum(devices * ((columns.first + 1) * width - columns.start)),
        func.sum(devices * (columns.end - columns.last * width)),
    ).group_by(*groups, columns.first, columns.last)
    return [
        GroupSum(
            key=tuple(key),
            kind=kind,
            is_gpu=is_gpu,
            interval=IntervalSum(
                first=int(first),
                last=max(int(first), int(last)),
                devices=int(count),
                whole=float(whole),
                head=float(head),
                tail=float(tail),
            ),
        )
        for *key, kind, is_gpu, first, last, count, whole, head, tail in await session.execute(
            query
        )
    ]


async def _list_live(
    session: Session, by: Sequence[str], wanted: UsageFilter, period: UsagePeriod, now: datetime
) -> list[GroupSum]:
    end = min(now, period.until)
    if end <= period.since:
        return []
    query = (
        select(*(_OF_LIVE[name] for name in by), JobRow.gpus, AttemptRow.started_at)
        .select_from(AttemptRow)
        .join(JobRow, JobRow.id == AttemptRow.job_id)
        .join(
            ExperimentRow,
            (ExperimentRow.project_id == JobRow.project_id)
            & (ExperimentRow.id == JobRow.experiment_id),
        )
        .where(AttemptRow.state.in_(LIVE_ATTEMPT_STATES), *_conditions(_OF_LIVE, wanted))
    )
    return [
        GroupSum(
            key=tuple(value or None for value in key),
            kind=USED,
            is_gpu=gpus > 0,
            interval=measure(period, started_at, end, max(1, gpus)),
        )
        for *key, gpus, started_at in await session.execute(query)
        if started_at < end
    ]


def _conditions(columns: dict[str, Any], wanted: UsageFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.project_ids is not None:
        found.append(columns["project"].in_(wanted.project_ids))
    if wanted.pools is not None:
        found.append(columns["pool"].in_(wanted.pools))
    named = {
        "user": wanted.user_id,
        "experiment": wanted.experiment_id,
        "environment": wanted.environment,
    }
    found += [columns[name] == value for name, value in named.items() if value is not None]
    return found


def _time(moment: datetime) -> ColumnElement[datetime]:
    return literal(moment, Timestamp())


class _SecondsAfter(FunctionElement[float]):
    """The seconds from a fixed time to a column of the type `Timestamp`."""

    inherit_cache = True
    type = Float(precision=53)

    def __init__(self, moment: ColumnElement[datetime], start: datetime) -> None:
        super().__init__(moment, _time(start))


@compiles(_SecondsAfter, "sqlite")
def _sqlite_seconds(element: _SecondsAfter, compiler: SQLCompiler, **options: Any) -> str:
    moment, start = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(CAST(({moment}) - ({start}) AS REAL) / 1000000.0)"


@compiles(_SecondsAfter, "postgresql")
def _postgresql_seconds(element: _SecondsAfter, compiler: SQLCompiler, **options: Any) -> str:
    moment, start = (compiler.process(clause, **options) for clause in element.clauses)
    return f"CAST(EXTRACT(EPOCH FROM ({moment}) - ({start})) AS DOUBLE PRECISION)"


class _Floor(FunctionElement[int]):
    """A number that is not negative, rounded down; SQLite need not have the function `floor`."""

    inherit_cache = True
    type = Integer()


@compiles(_Floor, "sqlite")
def _sqlite_floor(element: _Floor, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(({compiler.process(element.clauses, **options)}) AS INTEGER)"


@compiles(_Floor, "postgresql")
def _postgresql_floor(element: _Floor, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(FLOOR({compiler.process(element.clauses, **options)}) AS INTEGER)"
