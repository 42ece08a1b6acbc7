"""Pages of experiments that fit a filter, in the order of any key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Select, select, tuple_

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.repositories.experiments import ExperimentKey
from app.db.repositories.filter_conditions import build_experiment_conditions
from app.db.repositories.keyset_pages import KeyType, SortKey, sort_page
from app.db.repositories.list_scope import ListScope
from app.db.repositories.list_sorting import find_experiment_key, find_member_key, label_keys
from app.db.repositories.run_lists import WantedPage
from app.db.repositories.statistic_rows import Named, select_over_runs
from palestra.contract.list_order import OrderKey


async def find_key_type(session: Session, order: OrderKey, scope: ListScope) -> KeyType:
    """Returns the type of the values of a key."""
    return (await _find_key(session, order, scope)).type


async def list_page(
    session: Session, request: WantedPage
) -> list[tuple[ExperimentRow, tuple[Any, ...]]]:
    """Returns the experiments of a page and one more, each with the values of the keys."""
    keys = [await _find_directed_key(session, order, request.scope) for order in request.orders]
    query: Select[Any] = select(ExperimentRow, *label_keys(keys)).where(
        ExperimentRow.project_id.in_(request.scope.project_ids),
        *build_experiment_conditions(request.terms, request.scope),
    )
    query = sort_page(query, keys, ExperimentRow.id, after=request.after, limit=request.limit)
    return [(row[0], tuple(row[1:])) for row in await session.execute(query)]


async def _find_directed_key(session: Session, order: OrderKey, scope: ListScope) -> SortKey:
    key = await _find_key(session, order, scope)
    return replace(key, is_descending=order.is_descending)


async def _find_key(session: Session, order: OrderKey, scope: ListScope) -> SortKey:
    if order.kind in {"series", "threshold"}:
        return SortKey(select_over_runs(order, scope), "number", is_nullable=True)
    if order.kind == "member":
        columns = ExperimentRow.project_id, ExperimentRow.id
        return await find_member_key(session, order.field, scope, *columns)
    key = find_experiment_key(order.field)
    assert key is not None
    return key


async def load_statistics(
    session: Session, keys: Sequence[ExperimentKey], named: Named, scope: ListScope
) -> dict[ExperimentKey, float | None]:
    """Returns a statistic over the runs of each experiment."""
    value = select_over_runs(named, scope)
    query = select(ExperimentRow.project_id, ExperimentRow.id, value).where(
        tuple_(ExperimentRow.project_id, ExperimentRow.id).in_(keys)
    )
    return {(row[0], row[1]): row[2] for row in await session.execute(query)}
