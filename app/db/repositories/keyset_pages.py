"""Keyset pagination of queries."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Select, String, and_, or_
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import EPOCH, Timestamp
from app.domain.paging import Key, Keyset, refuse_cursor

Row = TypeVar("Row")
Columns = Mapping[str, InstrumentedAttribute[Any]]


def select_page(
    query: Select[Row], page: Keyset, columns: Columns, row_id: InstrumentedAttribute[str]
) -> Select[Row]:
    """Returns the query of one page and one row more, ordered by column and then by id."""
    column = columns[page.column]
    if page.after is not None:
        value, last = _stored(page.after[0], column), page.after[1]
        beyond, next_id = (
            (column < value, row_id < last) if page.descending else (column > value, row_id > last)
        )
        query = query.where(or_(beyond, and_(column == value, next_id)))
    order = (column.desc(), row_id.desc()) if page.descending else (column, row_id)
    return query.order_by(*order).limit(page.limit + 1)


def encode_key(value: Any) -> Key:
    """Returns a sort value in the form that a cursor holds."""
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def _stored(value: Key, column: InstrumentedAttribute[Any]) -> Any:
    wants_text = isinstance(column.type, String)
    if isinstance(value, str) is not wants_text or not isinstance(value, str | int):
        raise refuse_cursor()
    try:
        return (
            EPOCH + timedelta(microseconds=int(value))
            if isinstance(column.type, Timestamp)
            else value
        )
    except OverflowError:
        raise refuse_cursor() from None
