"""Pages of runs in the order of several keys.

Of few runs, or of keys without an index, all runs that fit are sorted. Where the first key is agent
or environment and many runs fit, the runs of one value after the other are listed in the order of
the other keys, until the page is full: the index of a single key then lists them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Float, Select, cast, null, select
from sqlalchemy.orm import aliased

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.summaries import SeriesSummaryRow, ThresholdCrossingRow
from app.db.repositories import run_lists
from app.db.repositories.filter_conditions import (
    OF_EXPERIMENT,
    build_experiment_conditions,
    build_run_conditions,
    is_about_experiment,
    is_one_of,
)
from app.db.repositories.list_scope import ListScope
from app.db.repositories.list_sorting import PageEnd, SortKey
from app.db.repositories.run_lists import Listed, WantedPage, find_few
from app.db.repositories.several_keys import DirectedKey, label_keys, list_keys, sort_by_keys
from app.db.repositories.statistic_rows import STATISTICS
from palestra.contract.filters import Term
from palestra.contract.list_order import OrderKey

_GROUPED: Final = frozenset({"agent", "env"})
_MAX_GROUPS: Final = 50
"""Agents or environments whose runs are listed one after the other for a page."""


async def list_page(session: Session, wanted: WantedPage) -> Listed:
    """Returns the runs of a page, in the order of one key or of several."""
    if not wanted.further:
        return await run_lists.list_page(session, wanted)
    few = await find_few(session, wanted.terms, wanted.scope) if wanted.terms else None
    if few is not None and not few:
        return []
    # A threshold may have the name of a field.
    if few is None and wanted.order.kind == "text" and wanted.order.field in _GROUPED:
        listed = await _list_by_groups(session, wanted)
        if listed is not None:
            return listed
    return await _sort(session, wanted, few)


async def _sort(session: Session, wanted: WantedPage, few: Sequence[str] | None) -> Listed:
    """Returns the runs of a page by sorting all that fit."""
    scope = wanted.scope
    orders = (wanted.order, *wanted.further)
    joins: list[tuple[Any, Any]] = []
    keys = [
        DirectedKey(await _find_key(session, one, scope, joins), one.is_descending)
        for one in orders
    ]
    query: Select[Any] = select(RunRow.id.label("id"), *label_keys(keys)).select_from(RunRow)
    if any(one.kind == "text" and one.field in OF_EXPERIMENT for one in orders):
        query = query.join(ExperimentRow, run_lists.is_experiment_of_run())
    for rows, condition in joins:
        query = query.outerjoin(rows, condition)
    query = query.where(RunRow.project_id.in_(scope.project_ids))
    if few is not None:
        query = query.where(is_one_of(session, RunRow.id, few))
    else:
        query = query.where(*build_run_conditions(wanted.terms, scope))
    found = query.subquery("sorted")
    shown = select(found.c.id, *list_keys(found, len(keys)))
    page = sort_by_keys(shown, found, keys, wanted.after, wanted.limit)
    return [(row[0], tuple(row[1:])) for row in await session.execute(page)]


async def _find_key(
    session: Session, order: OrderKey, scope: ListScope, joins: list[tuple[Any, Any]]
) -> SortKey:
    """Returns a key; one of a statistic adds the rows that hold it to `joins`."""
    if order.kind not in {"series", "threshold"}:
        return await run_lists.find_key(session, order, scope)
    known = scope.series if order.kind == "series" else scope.thresholds
    found: Any = known.get(order.field)
    if found is None:
        return SortKey(cast(null(), Float(53)), "number", is_nullable=True)
    if order.kind == "series":
        rows: Any = aliased(SeriesSummaryRow)
        condition = (rows.run_id == RunRow.id) & (rows.name_id == found)
    else:
        rows = aliased(ThresholdCrossingRow)
        condition = (rows.run_id == RunRow.id) & rows.threshold_id.in_(found)
    joins.append((rows, condition))
    value = getattr(rows, STATISTICS[order.statistic].key)
    return SortKey(value, "number", is_nullable=True)


async def _list_by_groups(session: Session, wanted: WantedPage) -> Listed | None:
    """Returns the runs of a page, the runs of each value of the first key in the order of the rest.

    `None` if the page has runs of too many values.
    """
    listed: Listed = []
    values = await _list_values(session, wanted)
    for value in values[:_MAX_GROUPS]:
        term = Term(wanted.order.field, "text", "is", (value,), 0)
        part = replace(
            wanted,
            terms=[*wanted.terms, term],
            order=wanted.further[0],
            further=wanted.further[1:],
            after=_find_end(wanted, value),
            limit=wanted.limit - len(listed),
        )
        for run_id, rest in await list_page(session, part):
            listed.append((run_id, (value, *rest) if part.further else (value, rest)))
        if len(listed) > wanted.limit:
            return listed
    return listed if len(values) <= _MAX_GROUPS else None


def _find_end(wanted: WantedPage, value: str) -> PageEnd | None:
    """Returns the end of the page before among the runs with a value of the first key."""
    after = wanted.after
    if after is None or after.value[0] != value:
        return None
    rest = after.value[1:]
    return replace(after, value=rest if len(rest) > 1 else rest[0])


async def _list_values(session: Session, wanted: WantedPage) -> list[str]:
    """Returns the values of the first key from that of the page before on, in order."""
    column = OF_EXPERIMENT[wanted.order.field]
    query: Select[Any] = select(column).where(
        ExperimentRow.project_id.in_(wanted.scope.project_ids),
        *build_experiment_conditions(filter(is_about_experiment, wanted.terms), wanted.scope),
    )
    if wanted.after is not None:
        first = wanted.after.value[0]
        is_left = column <= first if wanted.order.is_descending else column >= first
        query = query.where(is_left)
    order = column.desc() if wanted.order.is_descending else column.asc()
    return list(await session.scalars(query.distinct().order_by(order).limit(_MAX_GROUPS + 1)))
