"""Pages of lists that are sorted by several keys: rows without a value of one come last in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Label, Select, Subquery, and_, case, or_

from app.db.repositories.list_sorting import PageEnd, SortKey


@dataclass(frozen=True, slots=True)
class DirectedKey:
    """A key with its direction."""

    key: SortKey
    is_descending: bool


def label_keys(keys: Sequence[DirectedKey]) -> list[Label[Any]]:
    """Returns the values of keys as columns."""
    return [one.key.expression.label(f"key_{place}") for place, one in enumerate(keys)]


def list_keys(found: Subquery, number: int) -> list[Any]:
    """Returns the columns of `label_keys` of a subquery."""
    return [found.c[f"key_{place}"] for place in range(number)]


def sort_by_keys(
    query: Select[Any],
    found: Subquery,
    keys: Sequence[DirectedKey],
    after: PageEnd | None,
    limit: int,
) -> Select[Any]:
    """Returns the query of one page and one row more.

    Rows with the same values are in the order of their IDs, in the direction of the last key.

    Args:
        query: A query of rows of `found`.
        found: A subquery with the columns `id` and those of `label_keys`.
        keys: The keys.
        after: End of the page before, whose value is a tuple.
        limit: Rows of the page.
    """
    row_id, columns = found.c.id, list_keys(found, len(keys))
    if after is not None:
        query = query.where(_follows(row_id, columns, keys, after))
    order: list[ColumnElement[Any]] = []
    for column, one in zip(columns, keys, strict=True):
        if one.key.is_nullable:
            order.append(case((column.is_(None), 1), else_=0))
        order.append(column.desc() if one.is_descending else column.asc())
    order.append(row_id.desc() if keys[-1].is_descending else row_id.asc())
    return query.order_by(*order).limit(limit + 1)


def _follows(
    row_id: Any, columns: Sequence[Any], keys: Sequence[DirectedKey], after: PageEnd
) -> ColumnElement[bool]:
    same: list[ColumnElement[bool]] = []
    options: list[ColumnElement[bool]] = []
    for column, one, value in zip(columns, keys, after.value, strict=True):
        if value is not None:
            is_beyond = column < value if one.is_descending else column > value
            if one.key.is_nullable:
                is_beyond = or_(is_beyond, column.is_(None))
            options.append(and_(*same, is_beyond))
        same.append(column.is_(None) if value is None else column == value)
    is_next = row_id < after.id if keys[-1].is_descending else row_id > after.id
    return or_(*options, and_(*same, is_next))
