"""Keyset pagination of queries: rows without a value of a key come last, in both directions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, Select, String, and_, case, or_
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import EPOCH, Timestamp
from app.domain.paging import Key, Keys, Keyset, refuse_cursor

Row = TypeVar("Row")
Columns = Mapping[str, InstrumentedAttribute[Any]]
KeyType = Literal["text", "number", "time"]


@dataclass(frozen=True, slots=True)
class SortKey:
    """What rows are ordered by.

    Attributes:
        expression: The value.
        type: Its type.
        is_nullable: Whether rows may have no value.
        is_descending: Whether the highest value comes first.
    """

    expression: Any
    type: KeyType
    is_nullable: bool = False
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class PageEnd:
    """The end of the page before: the values of the keys and the ID of its last row."""

    values: tuple[Any, ...]
    id: str


def select_page(
    query: Select[Row], page: Keyset, columns: Columns, row_id: InstrumentedAttribute[str]
) -> Select[Row]:
    """Returns the query of one page and one row more, ordered by a column without NULL."""
    column = columns[page.column]
    key = SortKey(column, _find_type(column), is_descending=page.descending)
    after = None
    if page.after is not None:
        value, last_id = page.after
        if not isinstance(value, str | int):
            raise refuse_cursor()
        after = read_place(((value,), last_id), [key.type])
    return sort_page(query, [key], row_id, after=after, limit=page.limit)


def _find_type(column: InstrumentedAttribute[Any]) -> KeyType:
    if isinstance(column.type, Timestamp):
        return "time"
    return "text" if isinstance(column.type, String) else "number"


def sort_page(
    query: Select[Row],
    keys: Sequence[SortKey],
    row_id: Any,
    *,
    after: PageEnd | None,
    limit: int,
) -> Select[Row]:
    """Returns the query of one page and one row more.

    Rows with the same values are in the order of their IDs, in the direction of the last key.

    Args:
        query: A query of all rows.
        keys: The keys, at least one.
        row_id: Column of the IDs.
        after: End of the page before; `None` for the first page.
        limit: Rows of the page.
    """
    is_descending = keys[-1].is_descending
    order: list[ColumnElement[Any]] = []
    for key in keys:
        if key.is_nullable:
            order.append(case((key.expression.is_(None), 1), else_=0))
        order.append(key.expression.desc() if key.is_descending else key.expression.asc())
    order.append(row_id.desc() if is_descending else row_id.asc())
    if after is not None:
        query = query.where(_follows(keys, row_id, after))
    return query.order_by(*order).limit(limit + 1)


def _follows(keys: Sequence[SortKey], row_id: Any, after: PageEnd) -> ColumnElement[bool]:
    """Returns the condition that a row comes after the page before."""
    same: list[ColumnElement[bool]] = []
    options: list[ColumnElement[bool]] = []
    for key, value in zip(keys, after.values, strict=True):
        column = key.expression
        if value is not None:
            is_beyond = column < value if key.is_descending else column > value
            if key.is_nullable:
                is_beyond = or_(is_beyond, column.is_(None))
            options.append(and_(*same, is_beyond))
        same.append(column.is_(None) if value is None else column == value)
    is_next = row_id < after.id if keys[-1].is_descending else row_id > after.id
    condition = or_(*options, and_(*same, is_next))
    first, value = keys[0], after.values[0]
    if first.is_nullable or value is None:
        return condition
    # This condition alone lets the scan of an index start there.
    bound = first.expression <= value if first.is_descending else first.expression >= value
    return and_(bound, condition)


def encode_key(value: Any) -> Key:
    """Returns a sort value in the form that a cursor holds."""
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def read_place(after: tuple[Keys, str] | None, key_types: Sequence[KeyType]) -> PageEnd | None:
    """Returns the end of the page before, from the content of a cursor.

    Args:
        after: Values of the keys and ID of a row.
        key_types: The types of the keys.

    Raises:
        InvalidError: `invalid_cursor` if a value has another type than its key.
    """
    if after is None:
        return None
    keys, row_id = after
    return PageEnd(tuple(map(_read_value, keys, key_types)), row_id)


def _read_value(value: Key, key_type: KeyType) -> Any:
    if value is None:
        return None
    if isinstance(value, str) is not (key_type == "text"):
        raise refuse_cursor()
    if key_type != "time":
        return value
    try:
        return EPOCH + timedelta(microseconds=int(value))
    except OverflowError:
        raise refuse_cursor() from None
