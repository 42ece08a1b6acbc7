"""Lists of values as one parameter, so that statements with lists are built once.

On SQLite a list is one text of JSON, on PostgreSQL an array.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, FromClause, String, bindparam, func, select
from sqlalchemy import any_ as sql_any
from sqlalchemy.types import TypeEngine

_LIST = "ids"
_FIRST, _SECOND = "firsts", "seconds"


def is_listed(dialect: str, column: Any, name: str = _LIST) -> ColumnElement[bool]:
    """Returns the condition that a column of texts is one of the values of `write_list`.

    Args:
        dialect: Name of the database's dialect.
        column: The column.
        name: Name of the parameter.
    """
    if dialect == "sqlite":
        listed = func.json_each(bindparam(name, type_=String)).table_valued("value")
        return column.in_(select(listed.c.value))  # type: ignore[no-any-return]
    return column == sql_any(bindparam(name, type_=ARRAY(String)))  # type: ignore[no-any-return]


def write_list(dialect: str, values: Sequence[str], name: str = _LIST) -> Mapping[str, Any]:
    """Returns the parameter of `is_listed`."""
    return {name: json.dumps(values) if dialect == "sqlite" else list(values)}


def list_pairs(
    dialect: str, first: TypeEngine[Any], second: TypeEngine[Any]
) -> tuple[FromClause, ColumnElement[Any], ColumnElement[Any]]:
    """Returns the pairs of `write_pairs` as a table, and its two columns.

    Args:
        dialect: Name of the database's dialect.
        first: Type of the first values.
        second: Type of the second values.
    """
    if dialect == "sqlite":
        pairs = func.json_each(bindparam(_FIRST, type_=String)).table_valued("value")
        one, other = (func.json_extract(pairs.c.value, f"$[{place}]") for place in (0, 1))
        return pairs, one, other
    arrays = (
        bindparam(name, type_=ARRAY(kind)) for name, kind in ((_FIRST, first), (_SECOND, second))
    )
    pairs = func.unnest(*arrays).table_valued("first", "second").render_derived()
    return pairs, pairs.c.first, pairs.c.second


def write_pairs(dialect: str, pairs: Sequence[tuple[Any, Any]]) -> Mapping[str, Any]:
    """Returns the parameters of `list_pairs`."""
    if dialect == "sqlite":
        return {_FIRST: json.dumps(pairs)}
    return {_FIRST: [one for one, _ in pairs], _SECOND: [other for _, other in pairs]}
