"""The runs that fit a filter with one value each, for the statistics of groups."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, null, select

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.repositories.filter_conditions import (
    OF_RUN,
    build_run_conditions,
    is_one_of,
)
from app.db.repositories.list_scope import ListScope
from app.db.repositories.run_lists import find_few
from app.db.repositories.statistic_rows import find_rows
from palestra.contract.filters import Term
from palestra.contract.list_order import OrderKey
from palestra.contract.states import Cause, RunState


class MeasuredRun(NamedTuple):
    """What groups need of a run; `value` is that of the metric, `None` where the run has none."""

    project_id: str
    experiment_id: str
    seed: int
    state: RunState
    cause: Cause | None
    created_by: str
    value: float | None


async def list_measured(
    session: Session,
    terms: Sequence[Term],
    metric: OrderKey,
    scope: ListScope,
    limit: int,
) -> list[MeasuredRun]:
    """Returns the runs that fit all terms, in no order; at most `limit`.

    Args:
        session: A session.
        terms: The filter.
        metric: A series with its statistic, or a field of runs that is a number.
        scope: What the names mean, and what the caller may read.
        limit: Largest number of runs.
    """
    query = _select_measured(metric, scope).where(*await build_conditions(session, terms, scope))
    return [MeasuredRun(*row) for row in await session.execute(query.limit(limit))]


RunConditions = list[ColumnElement[bool]]
"""Conditions on `RunRow` that must all hold."""


async def build_conditions(
    session: Session,
    terms: Sequence[Term],
    scope: ListScope,
    *,
    run_ids: Sequence[str] | None = None,
    states: Collection[RunState] | None = None,
    after: str = "",
) -> RunConditions:
    """Returns the conditions that a run is the caller's to read and fits all terms.

    Args:
        session: A session.
        terms: The filter.
        scope: What the names mean, and what the caller may read.
        run_ids: IDs of the runs; `None` takes all.
        states: States of the runs; `None` takes all.
        after: ID beyond which the IDs of the runs lie.
    """
    conditions: RunConditions = [RunRow.project_id.in_(scope.project_ids)]
    if run_ids is not None:
        conditions.append(is_one_of(session, RunRow.id, run_ids))
    if states is not None:
        conditions.append(RunRow.state.in_(states))
    if after:
        conditions.append(RunRow.id > after)
    few = await find_few(session, terms, scope) if terms else None
    if few is not None:
        return [*conditions, is_one_of(session, RunRow.id, few)]
    return [*conditions, *build_run_conditions(terms, scope)]


def _select_measured(metric: OrderKey, scope: ListScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        RunRow.project_id,
        RunRow.experiment_id,
        RunRow.seed,
        RunRow.state,
        RunRow.cause,
        RunRow.created_by,
    )
    if metric.kind not in {"series", "threshold"}:
        return select(*columns, OF_RUN[metric.field])
    rows = find_rows(metric, scope)
    if rows is None:
        return select(*columns, null())
    mine = and_(rows.run_id == RunRow.id, rows.condition)
    return select(*columns, rows.value).outerjoin_from(RunRow, rows.run_id.class_, mine)
