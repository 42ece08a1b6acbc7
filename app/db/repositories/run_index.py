"""Pages of runs that an index of summaries lists alone, read together with their keys.

That holds for lists in the order of a statistic of a series whose filter names nothing but setups:
agents, environments and projects. The statements are built once for each filter, and none of them
needs a visit of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

from sqlalchemy import String, bindparam, select

from app.db.models.summaries import SeriesNameRow, SetupRow
from app.db.prepared import Plan, Prepared, Read, prepare
from app.db.repositories.filter_conditions import build_setup_condition, is_about_setup
from app.db.repositories.list_scope import ListScope
from app.db.repositories.list_sorting import PageEnd
from app.db.repositories.partition_walk import Walk, plan_first
from app.db.repositories.run_lists import (
    MAX_PARTITIONS,
    Listed,
    WantedPage,
    select_lacking,
)
from app.db.repositories.statistic_rows import find_rows
from palestra.contract.filters import Term
from palestra.contract.list_order import OrderKey

_KEPT: Final = 256
"""Filters whose statements are kept."""


def is_covered(orders: Sequence[OrderKey], terms: Sequence[Term]) -> bool:
    """Returns whether an index of summaries may list the runs alone."""
    is_one = len(orders) == 1 and orders[0].kind == "series"
    return is_one and all(map(is_about_setup, terms))


@dataclass(frozen=True, slots=True)
class _Filter:
    """What the statements of a filter depend on."""

    dialect: str
    terms: tuple[Term, ...]
    projects: tuple[tuple[str, str], ...]
    """ID and slug of each project that the caller may read."""

    @property
    def scope(self) -> ListScope:
        """The scope without names of series."""
        slugs = dict(self.projects)
        return ListScope(tuple(slugs), slugs, {}, {})


def plan_page(dialect: str, wanted: WantedPage) -> Plan[Listed | None]:
    """Reads the runs of a page whose order `is_covered`; the scope names no series.

    Returns `None` if the runs are of too many setups.
    """
    order, after = wanted.order, wanted.after
    chosen = _Filter(dialect, tuple(wanted.terms), tuple(sorted(wanted.scope.slugs.items())))
    names, setups = yield [
        Read(_select_name(), {"name": order.field}),
        Read(_prepare_setups(chosen), {}),
    ]
    if len(setups) > MAX_PARTITIONS:
        return None
    name_id = names[0].id if names else None
    listed: Listed = []
    if name_id is not None and (after is None or after.value is not None):
        if setups:
            most = wanted.limit + 1
            walk = Walk(order.statistic, name_id, (), order.is_descending, after, most)
            rows = yield from plan_first(dialect, walk, [row.id for row in setups])
            listed = [(row.run_id, row.value) for row in rows]
        after = None
    if len(listed) > wanted.limit:
        return listed
    statement = _prepare_lacking(chosen, order, name_id, wanted.limit, after is not None)
    (lacking,) = yield [Read(statement, {} if after is None else {"after_id": after.id})]
    return [*listed, *((row.id, None) for row in lacking)][: wanted.limit + 1]


@cache
def _select_name() -> Any:
    given = bindparam("name", type_=String(), required=False)
    return select(SeriesNameRow.id).where(SeriesNameRow.name == given)


@lru_cache(_KEPT)
def _prepare_setups(chosen: _Filter) -> Prepared:
    scope = chosen.scope
    conditions = [build_setup_condition(term, scope) for term in chosen.terms]
    query = select(SetupRow.id).where(SetupRow.project_id.in_(scope.project_ids), *conditions)
    return prepare(query, chosen.dialect)


@lru_cache(_KEPT)
def _prepare_lacking(
    chosen: _Filter, order: OrderKey, name_id: int | None, limit: int, has_after: bool
) -> Prepared:
    scope = chosen.scope
    if name_id is not None:
        scope = replace(scope, series={order.field: name_id})
    given: Any = bindparam("after_id", type_=String(), required=False)
    after = PageEnd(None, given)
    wanted = WantedPage(chosen.terms, order, scope, after if has_after else None, limit)
    return prepare(select_lacking(find_rows(order, scope), wanted, wanted.after), chosen.dialect)
