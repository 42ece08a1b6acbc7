"""Pages of runs that fit a filter, in the order of any key.

What a list costs depends on how many runs fit. Up to `FEW` they are found first, by the most
selective terms, and then sorted. If there are more, an index is walked in the order of the key
until the page is full: that takes few steps where many rows fit. The index of a statistic holds the
runs of each setup (project, agent and environment) apart, so terms on these cost nothing. That of
the crossings of thresholds holds those of each threshold apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, exists, false, or_, select

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.summaries import DefinitionMemberRow, SetupRow
from app.db.repositories import partition_walk
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
from app.db.repositories.list_scope import ListScope
from app.db.repositories.list_sorting import (
    KeyType,
    PageEnd,
    SortKey,
    build_member_key,
    find_run_key,
    sort_page,
)
from app.db.repositories.partition_walk import Walk
from app.db.repositories.statistic_rows import StatisticRows, find_rows
from palestra.contract.filters import Term
from palestra.contract.list_order import OrderKey

FEW: Final = 3_000
"""Runs that are sorted after they were found."""
_EXPERIMENTS: Final = 1_000
MAX_PARTITIONS: Final = 500
"""Parts of an index whose runs are merged; of more, all runs with the value are sorted."""


@dataclass(frozen=True, slots=True)
class WantedPage:
    """A page of a list.

    Attributes:
        terms: Terms of the filter, which must all hold.
        order: The first key.
        scope: What the names mean, and what the caller may read.
        after: End of the page before; with further keys its value is a tuple of all their values.
        limit: Largest number of rows.
        further: The keys after the first, in whose order rows with the same value are.
    """

    terms: Sequence[Term]
    order: OrderKey
    scope: ListScope
    after: PageEnd | None
    limit: int
    further: tuple[OrderKey, ...] = ()


Listed = list[tuple[str, Any]]
"""ID and value of the key of the rows of a page, and of one row more if there is a next page.

With further keys the value is a tuple.
"""


async def find_key_type(session: Session, order: OrderKey, scope: ListScope) -> KeyType:
    """Returns the type of the values of a key."""
    if order.kind == "member":
        return "number" if await _is_number(session, order.field, scope) else "text"
    key = find_run_key(order.field)
    return "number" if order.kind in {"series", "threshold"} or key is None else key.type


async def list_page(session: Session, wanted: WantedPage) -> Listed:
    """Returns the runs of a page."""
    terms, order, scope = wanted.terms, wanted.order, wanted.scope
    few = await find_few(session, terms, scope) if _needs_search(terms, order) else None
    if few is not None and not few:
        return []
    if order.kind in {"series", "threshold"}:
        rows = find_rows(order, scope)
        if few is not None:
            return await _sort_few(session, few, rows, wanted)
        return await _walk(session, rows, wanted)
    key = await find_key(session, order, scope)
    query: Select[Any] = select(RunRow.id, key.expression)
    query = query.where(RunRow.project_id.in_(scope.project_ids))
    if few is not None:
        query = query.where(is_one_of(session, RunRow.id, few))
    else:
        query = query.where(*build_run_conditions(terms, scope))
    if order.field in OF_EXPERIMENT:
        query = query.join(ExperimentRow, is_experiment_of_run())
    query = sort_page(
        query,
        key,
        RunRow.id,
        is_descending=order.is_descending,
        after=wanted.after,
        limit=wanted.limit,
    )
    return [(row[0], row[1]) for row in await session.execute(query)]


def _needs_search(terms: Sequence[Term], order: OrderKey) -> bool:
    """Returns whether few runs may fit terms that the index of the key does not hold."""
    return any(order.kind != "series" or not is_about_setup(term) for term in terms)


def is_experiment_of_run() -> ColumnElement[bool]:
    return (ExperimentRow.project_id == RunRow.project_id) & (
        ExperimentRow.id == RunRow.experiment_id
    )


async def find_key(session: Session, order: OrderKey, scope: ListScope) -> SortKey:
    """Returns the key of a field of runs, or of a member of the definition."""
    if order.kind == "member":
        is_number = await _is_number(session, order.field, scope)
        return build_member_key(
            order.field, RunRow.project_id, RunRow.experiment_id, is_number=is_number
        )
    key = find_run_key(order.field)
    assert key is not None
    return key


async def _is_number(session: Session, path: str, scope: ListScope) -> bool:
    row = DefinitionMemberRow
    query = select(row.number).where(
        row.path == path, row.number.is_not(None), row.project_id.in_(scope.project_ids)
    )
    return (await session.scalar(query.limit(1))) is not None


async def find_few(session: Session, terms: Sequence[Term], scope: ListScope) -> list[str] | None:
    """Returns the IDs of the runs that fit all terms; `None` if they are more than `FEW`."""
    query = select(RunRow.id).where(RunRow.project_id.in_(scope.project_ids))
    rest = list(terms)
    ids: set[str] | None = None
    for term in terms:
        if term.kind in {"series", "threshold"} and not term.is_negated:
            found = await _find_by_statistic(session, term, terms, scope)
            if found is not None:
                ids = found if ids is None else ids & found
                # Of the setups that fit; projects are checked with the runs.
                held = SETUP_FIELDS - {"project"} if term.kind == "series" else frozenset()
                rest = [
                    one
                    for one in rest
                    if one is not term and not (is_about_setup(one) and one.field in held)
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
            (RunRow.project_id == project_id) & is_one_of(session, RunRow.experiment_id, some)
            for project_id, some in ids.items()
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
        query = query.where(rows.partition.in_(await _list_setups(session, terms, scope)))
    found = set(await session.scalars(query.limit(FEW + 1)))
    return found if len(found) <= FEW else None


async def _list_setups(session: Session, terms: Sequence[Term], scope: ListScope) -> list[int]:
    query = select(SetupRow.id).where(
        SetupRow.project_id.in_(scope.project_ids),
        *(build_setup_condition(term, scope) for term in terms if is_about_setup(term)),
    )
    return list(await session.scalars(query))


async def _sort_few(
    session: Session, runs: Sequence[str], rows: StatisticRows | None, wanted: WantedPage
) -> Listed:
    order = wanted.order
    values = {} if rows is None else await _load_values(session, runs, rows, wanted)
    sign = -1 if order.is_descending else 1
    having = sorted(values, reverse=order.is_descending)
    having.sort(key=lambda run_id: sign * values[run_id])
    lacking = sorted(set(runs) - values.keys(), reverse=order.is_descending)
    listed = [(run_id, values.get(run_id)) for run_id in (*having, *lacking)]
    return [row for row in listed if _follows(row, wanted.after, order)][: wanted.limit + 1]


async def _load_values(
    session: Session, runs: Sequence[str], rows: StatisticRows, wanted: WantedPage
) -> dict[str, Any]:
    """Returns the statistic of those of some runs that have it."""
    order, query = wanted.order, select(rows.run_id, rows.value).where(rows.value.is_not(None))
    for term in wanted.terms:
        is_same = (term.kind, term.field, term.statistic) == (
            order.kind,
            order.field,
            order.statistic,
        )
        if is_same and not term.is_negated:
            # All of the runs fit the term: an index has them beside each other.
            near = query.where(compare_statistic(term, rows))
            if order.kind == "series":
                setups = await _list_setups(session, wanted.terms, wanted.scope)
                near = near.where(rows.partition.in_(setups))
            found = (await session.execute(near.limit(FEW + 1))).all()
            if len(found) <= FEW:
                wanted_ids = set(runs)
                return {row[0]: row[1] for row in found if row[0] in wanted_ids}
    query = query.where(rows.condition, is_one_of(session, rows.run_id, runs))
    return dict((await session.execute(query)).all())


def _follows(row: tuple[str, Any], after: PageEnd | None, order: OrderKey) -> bool:
    if after is None:
        return True
    run_id, value = row
    if (value is None) != (after.value is None):
        return value is None
    if value == after.value:
        return run_id < after.id if order.is_descending else run_id > after.id
    return bool(value < after.value if order.is_descending else value > after.value)


async def _walk(session: Session, rows: StatisticRows | None, wanted: WantedPage) -> Listed:
    listed: Listed = []
    after = wanted.after
    if rows is not None and (after is None or after.value is not None):
        partitions = await _list_partitions(session, wanted)
        if partitions:
            listed = await _list_having(session, rows, partitions, wanted)
        after = None
    if len(listed) > wanted.limit:
        return listed
    lacking = await session.scalars(select_lacking(rows, wanted, after))
    return [*listed, *((run_id, None) for run_id in lacking)][: wanted.limit + 1]


async def _list_partitions(session: Session, wanted: WantedPage) -> Sequence[int]:
    """Returns the parts of the index of the key that the page may have runs of."""
    if wanted.order.kind == "threshold":
        return wanted.scope.thresholds[wanted.order.field]
    return await _list_setups(session, wanted.terms, wanted.scope)


def select_lacking(
    rows: StatisticRows | None, wanted: WantedPage, after: PageEnd | None
) -> Select[Any]:
    """Returns the query of the runs without the statistic, which follow all others."""
    query: Select[Any] = select(RunRow.id).where(
        RunRow.project_id.in_(wanted.scope.project_ids),
        *build_run_conditions(wanted.terms, wanted.scope),
    )
    if rows is not None:
        query = query.where(
            ~exists().where(rows.run_id == RunRow.id, rows.condition, rows.value.is_not(None))
        )
    return sort_page(
        query,
        SortKey(RunRow.id, "text"),
        RunRow.id,
        is_descending=wanted.order.is_descending,
        after=None if after is None else replace(after, value=after.id),
        limit=wanted.limit,
    )


async def _list_having(
    session: Session, rows: StatisticRows, partitions: Sequence[int], wanted: WantedPage
) -> Listed:
    """Returns the first runs with the statistic."""
    order = wanted.order
    not_held = (term for term in wanted.terms if order.kind != "series" or not is_about_setup(term))
    conditions = build_run_conditions(not_held, wanted.scope)
    if len(partitions) <= MAX_PARTITIONS:
        walk = Walk(
            order.statistic,
            wanted.scope.series[order.field] if order.kind == "series" else None,
            conditions,
            order.is_descending,
            wanted.after,
            wanted.limit + 1,
        )
        found = await partition_walk.list_first(session, walk, partitions)
        return [(row.run_id, row.value) for row in found]
    query: Select[Any] = select(rows.run_id, rows.value).where(
        rows.condition, rows.value.is_not(None), rows.partition.in_(partitions)
    )
    if conditions:
        query = query.join(RunRow, RunRow.id == rows.run_id).where(*conditions)
    query = sort_page(
        query,
        SortKey(rows.value, "number"),
        rows.run_id,
        is_descending=order.is_descending,
        after=wanted.after,
        limit=wanted.limit,
    )
    return [(row[0], row[1]) for row in await session.execute(query)]
