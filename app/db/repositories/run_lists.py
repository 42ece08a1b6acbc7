"""Pages of runs that fit a filter, in the order of any keys.

What a list costs depends on how many runs fit. Up to `FEW` they are found first, by the most
selective terms, and then sorted. If there are more, an index is read in the order of the key until
the page is full, where one has that order: that takes few steps where many rows fit. The index of a
statistic holds the runs of each setup (project, agent and environment) apart, so terms on these
cost nothing. That of the crossings of thresholds holds those of each threshold apart. Where the
first of several keys is agent or environment, the runs are listed by the other keys for each of its
values in turn. By other keys, all runs that fit are sorted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Float, Select, cast, exists, false, null, or_, select, true
from sqlalchemy.orm import aliased

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.summaries import (
    SeriesSummaryRow,
    SetupRow,
    ThresholdCrossingRow,
    ThresholdRow,
)
from app.db.repositories.filter_conditions import (
    OF_EXPERIMENT,
    SETUP_FIELDS,
    build_experiment_conditions,
    build_run_conditions,
    build_setup_condition,
    compare_statistic,
    is_about_experiment,
    is_about_setup,
    is_one_of,
)
from app.db.repositories.keyset_pages import KeyType, PageEnd, SortKey, sort_page
from app.db.repositories.list_scope import ListScope
from app.db.repositories.list_sorting import find_member_key, find_run_key, label_keys
from app.db.repositories.statistic_rows import STATISTICS, StatisticRows, find_rows
from palestra.contract.filters import Term
from palestra.contract.list_order import OrderKey

FEW: Final = 3_000
"""Runs that are sorted after they were found."""
_EXPERIMENTS: Final = 1_000
_GROUPED: Final = frozenset({"agent", "env"})
_MAX_GROUPS: Final = 50
"""Agents or environments whose runs are listed one after the other for a page."""


@dataclass(frozen=True, slots=True)
class WantedPage:
    """A page of a list.

    Attributes:
        terms: Terms of the filter, which must all hold.
        orders: The keys, at least one.
        scope: What the names mean, and what the caller may read.
        after: End of the page before.
        limit: Largest number of rows.
    """

    terms: Sequence[Term]
    orders: Sequence[OrderKey]
    scope: ListScope
    after: PageEnd | None
    limit: int


Listed = list[tuple[str, tuple[Any, ...]]]
"""ID and values of the keys of the rows of a page, and of one row more if there is a next page."""


async def find_key_type(session: Session, order: OrderKey, scope: ListScope) -> KeyType:
    """Returns the type of the values of a key."""
    if order.kind == "member":
        return (await _find_member_key(session, order, scope)).type
    key = find_run_key(order.field)
    return "number" if order.kind in {"series", "threshold"} or key is None else key.type


async def list_page(session: Session, request: WantedPage) -> Listed:
    """Returns the runs of a page."""
    few = None
    if _needs_search(request):
        few = await find_few(session, request.terms, request.scope)
        if few is not None and not few:
            return []
    if few is None:
        first = request.orders[0]
        if len(request.orders) == 1:
            if first.kind in {"series", "threshold"}:
                return await _list_by_statistic(session, request)
        # A threshold may have the name of a field.
        elif first.kind == "text" and first.field in _GROUPED:
            listed = await _list_by_groups(session, request)
            if listed is not None:
                return listed
    return await _sort(session, request, few)


def _needs_search(request: WantedPage) -> bool:
    """Returns whether few runs may fit terms that the index of the key does not hold."""
    is_held = len(request.orders) == 1 and request.orders[0].kind == "series"
    return any(not (is_held and is_about_setup(term)) for term in request.terms)


async def _sort(session: Session, request: WantedPage, few: Sequence[str] | None) -> Listed:
    """Returns the runs of a page by sorting all that fit, or in the order of an index of runs.

    Args:
        session: A session.
        request: The page.
        few: IDs of the runs that fit; `None` where they are not known.
    """
    scope = request.scope
    joins: list[tuple[Any, ColumnElement[bool]]] = []
    keys = [await _find_key(session, order, scope, joins) for order in request.orders]
    query: Select[Any] = select(RunRow.id, *label_keys(keys)).select_from(RunRow)
    if any(order.kind == "text" and order.field in OF_EXPERIMENT for order in request.orders):
        query = query.join(ExperimentRow, _is_experiment_of_run())
    for rows, condition in joins:
        query = query.outerjoin(rows, condition)
    query = query.where(RunRow.project_id.in_(scope.project_ids))
    if few is not None:
        query = query.where(is_one_of(session, RunRow.id, few))
    else:
        query = query.where(*build_run_conditions(request.terms, scope))
    query = sort_page(query, keys, RunRow.id, after=request.after, limit=request.limit)
    return [(row[0], tuple(row[1:])) for row in await session.execute(query)]


async def _find_key(
    session: Session,
    order: OrderKey,
    scope: ListScope,
    joins: list[tuple[Any, ColumnElement[bool]]],
) -> SortKey:
    """Returns a key; one of a statistic adds the rows that hold it to `joins`."""
    if order.kind in {"series", "threshold"}:
        key = _find_statistic_key(order, scope, joins)
    elif order.kind == "member":
        key = await _find_member_key(session, order, scope)
    else:
        field_key = find_run_key(order.field)
        assert field_key is not None
        key = field_key
    return replace(key, is_descending=order.is_descending)


async def _find_member_key(session: Session, order: OrderKey, scope: ListScope) -> SortKey:
    columns = RunRow.project_id, RunRow.experiment_id
    return await find_member_key(session, order.field, scope, *columns)


def _find_statistic_key(
    order: OrderKey, scope: ListScope, joins: list[tuple[Any, ColumnElement[bool]]]
) -> SortKey:
    name_id = scope.series.get(order.field) if order.kind == "series" else None
    threshold_ids = scope.thresholds.get(order.field) if order.kind == "threshold" else None
    if name_id is not None:
        rows: Any = aliased(SeriesSummaryRow)
        condition = rows.name_id == name_id
    elif threshold_ids is not None:
        rows = aliased(ThresholdCrossingRow)
        condition = rows.threshold_id.in_(threshold_ids)
    else:
        return SortKey(cast(null(), Float(53)), "number", is_nullable=True)
    joins.append((rows, (rows.run_id == RunRow.id) & condition))
    return SortKey(getattr(rows, STATISTICS[order.statistic].key), "number", is_nullable=True)


def _is_experiment_of_run() -> ColumnElement[bool]:
    return (ExperimentRow.project_id == RunRow.project_id) & (
        ExperimentRow.id == RunRow.experiment_id
    )


async def find_few(session: Session, terms: Sequence[Term], scope: ListScope) -> list[str] | None:
    """Returns the IDs of the runs that fit all terms; `None` if they are more than `FEW`."""
    query = select(RunRow.id).where(RunRow.project_id.in_(scope.project_ids))
    rest = list(terms)
    ids: set[str] | None = None
    for term in terms:
        if term.kind in {"series", "threshold"} and not term.is_negated:
            fitting = await _find_by_statistic(session, term, terms, scope)
            if fitting is not None:
                ids = fitting if ids is None else ids & fitting
                # Of the setups that fit; projects are checked with the runs.
                held = SETUP_FIELDS - {"project"} if term.kind == "series" else frozenset()
                rest = [
                    other
                    for other in rest
                    if other is not term and not (is_about_setup(other) and other.field in held)
                ]
    of_experiments = [term for term in rest if is_about_experiment(term)]
    if ids is not None:
        query = query.where(is_one_of(session, RunRow.id, sorted(ids)))
    elif of_experiments:
        condition = await _find_experiments(session, of_experiments, scope)
        if condition is not None:
            query = query.where(condition)
            rest = [term for term in rest if term not in of_experiments]
        elif len(of_experiments) == len(rest):
            # Some of the first runs in any order are of so many experiments.
            return None
    query = query.where(*build_run_conditions(rest, scope)).limit(FEW + 1)
    runs = list(await session.scalars(query))
    return runs if len(runs) <= FEW else None


async def _find_experiments(
    session: Session, terms: Sequence[Term], scope: ListScope
) -> ColumnElement[bool] | None:
    """Returns the condition that a run is of one of the experiments that fit; `None` if many do."""
    query = select(ExperimentRow.project_id, ExperimentRow.id).where(
        ExperimentRow.project_id.in_(scope.project_ids),
        *build_experiment_conditions(terms, scope),
    )
    ids: dict[str, list[str]] = {}
    for project_id, experiment_id in await session.execute(query.limit(_EXPERIMENTS + 1)):
        ids.setdefault(project_id, []).append(experiment_id)
    if sum(map(len, ids.values())) > _EXPERIMENTS:
        return None
    return or_(
        false(),
        *(
            (RunRow.project_id == project_id) & is_one_of(session, RunRow.experiment_id, own_ids)
            for project_id, own_ids in ids.items()
        ),
    )


async def _find_by_statistic(
    session: Session, term: Term, terms: Sequence[Term], scope: ListScope
) -> set[str] | None:
    """Returns the runs whose statistic fits, of those setups that fit; `None` if many do."""
    rows = find_rows(term, scope)
    if rows is None:
        return set()
    query = select(rows.run_id).where(compare_statistic(term, rows))
    if term.kind == "series":
        query = query.where(rows.partition.in_(_select_setups(terms, scope)))
    run_ids = set(await session.scalars(query.limit(FEW + 1)))
    return run_ids if len(run_ids) <= FEW else None


def _select_setups(terms: Sequence[Term], scope: ListScope) -> Select[int]:
    return select(SetupRow.id).where(
        SetupRow.project_id.in_(scope.project_ids),
        *(build_setup_condition(term, scope) for term in terms if is_about_setup(term)),
    )


async def _list_by_statistic(session: Session, request: WantedPage) -> Listed:
    """Returns the runs of a page in the order of an index of a statistic.

    The runs without the statistic follow all others.
    """
    rows = find_rows(request.orders[0], request.scope)
    listed: Listed = []
    after = request.after
    if rows is not None and (after is None or after.values[0] is not None):
        page = _select_with_statistic(session, rows, request)
        listed = [(row[0], (row[1],)) for row in await session.execute(page)]
        after = None
    if len(listed) > request.limit:
        return listed
    others = await session.scalars(_select_without_statistic(rows, request, after))
    return [*listed, *((run_id, (None,)) for run_id in others)][: request.limit + 1]


def _select_with_statistic(
    session: Session, rows: StatisticRows, request: WantedPage
) -> Select[Any]:
    """Returns the query of the runs with the statistic."""
    (order,), scope = request.orders, request.scope
    if order.kind == "series":
        partitions = _select_setups(request.terms, scope)
        terms = [term for term in request.terms if not is_about_setup(term)]
    else:
        partitions = select(ThresholdRow.id).where(
            ThresholdRow.id.in_(scope.thresholds[order.field])
        )
        terms = list(request.terms)
    query: Select[Any] = select(rows.run_id, rows.value).where(
        rows.condition, rows.value.is_not(None)
    )
    of_value = [term for term in terms if _is_of_key(term, order)]
    query = query.where(*(compare_statistic(term, rows) for term in of_value))
    if len(terms) > len(of_value):
        others = build_run_conditions((term for term in terms if term not in of_value), scope)
        query = query.where(exists().where(RunRow.id == rows.run_id, *others))
    key = SortKey(rows.value, "number", is_descending=order.is_descending)
    if session.get_bind().dialect.name == "sqlite":
        # SQLite stops reading a partition at the first row that sorts after a full page.
        query = query.where(rows.partition.in_(partitions))
        return sort_page(query, [key], rows.run_id, after=request.after, limit=request.limit)
    partition = partitions.subquery("partition")
    query = query.where(rows.partition == partition.c.id)
    page = sort_page(query, [key], rows.run_id, after=request.after, limit=request.limit)
    first = page.lateral("first")
    key = replace(key, expression=first.c[rows.value.key])
    merged = select(first.c.run_id, key.expression).select_from(partition.join(first, true()))
    return sort_page(merged, [key], first.c.run_id, after=None, limit=request.limit)


def _is_of_key(term: Term, order: OrderKey) -> bool:
    """Returns whether a term compares the statistic that is the key of the order."""
    statistic = (order.kind, order.field, order.statistic)
    return (term.kind, term.field, term.statistic) == statistic and not term.is_negated


def _select_without_statistic(
    rows: StatisticRows | None, request: WantedPage, after: PageEnd | None
) -> Select[Any]:
    """Returns the query of the runs without the statistic."""
    query: Select[Any] = select(RunRow.id).where(
        RunRow.project_id.in_(request.scope.project_ids),
        *build_run_conditions(request.terms, request.scope),
    )
    if rows is not None:
        query = query.where(
            ~exists().where(rows.run_id == RunRow.id, rows.condition, rows.value.is_not(None))
        )
    key = SortKey(RunRow.id, "text", is_descending=request.orders[0].is_descending)
    place = None if after is None else PageEnd((after.id,), after.id)
    return sort_page(query, [key], RunRow.id, after=place, limit=request.limit)


async def _list_by_groups(session: Session, request: WantedPage) -> Listed | None:
    """Returns the runs of a page, the runs of each value of the first key in the order of the rest.

    `None` if the page has runs of too many values.
    """
    listed: Listed = []
    values = await _list_values(session, request)
    for value in values[:_MAX_GROUPS]:
        part = replace(
            request,
            terms=[*request.terms, Term(request.orders[0].field, "text", "is", (value,), 0)],
            orders=request.orders[1:],
            after=_find_end(request, value),
            limit=request.limit - len(listed),
        )
        rows = await list_page(session, part)
        listed += [(run_id, (value, *rest)) for run_id, rest in rows]
        if len(listed) > request.limit:
            return listed
    return listed if len(values) <= _MAX_GROUPS else None


def _find_end(request: WantedPage, value: str) -> PageEnd | None:
    """Returns the end of the page before among the runs with a value of the first key."""
    after = request.after
    if after is None or after.values[0] != value:
        return None
    return replace(after, values=after.values[1:])


async def _list_values(session: Session, request: WantedPage) -> list[str]:
    """Returns the values of the first key from that of the page before on, in order."""
    first = request.orders[0]
    column = OF_EXPERIMENT[first.field]
    query: Select[Any] = select(column).where(
        ExperimentRow.project_id.in_(request.scope.project_ids),
        *build_experiment_conditions(filter(is_about_experiment, request.terms), request.scope),
    )
    if request.after is not None:
        value = request.after.values[0]
        query = query.where(column <= value if first.is_descending else column >= value)
    order = column.desc() if first.is_descending else column.asc()
    return list(await session.scalars(query.distinct().order_by(order).limit(_MAX_GROUPS + 1)))
