"""Lists of values as one parameter of a statement.

A list that is one parameter has no bound on its length, and a statement is the same for lists of
all lengths. It is a text of JSON on SQLite, and an array on PostgreSQL.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    Dialect,
    FromClause,
    String,
    TableValuedAlias,
    bindparam,
    cast,
    column,
    select,
    tuple_,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine


class List(TypeDecorator[Collection[Any]]):
    """Type of a parameter that is a list of values.

    Args:
        item: Type of the values: texts or whole numbers.
    """

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Returns the type of each dialect."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String())
        # PostgreSQL cuts texts that are cast to a type with a length.
        item = String() if isinstance(self.item, String) else self.item
        return dialect.type_descriptor(ARRAY(item))

    def process_bind_param(self, value: Collection[Any] | None, dialect: Dialect) -> Any:
        """Returns the list as the driver takes it."""
        if value is None:
            return None
        return json.dumps(list(value)) if dialect.name == "sqlite" else list(value)


class _IsListed(FunctionElement[bool]):
    """Condition that a column is one of the values of a parameter.

    It has no type: SQLite has no booleans, so one of that type would be compared with 1, by which
    SQLite finds no index.
    """

    inherit_cache = True


@compiles(_IsListed, "sqlite")
def _sqlite_is_listed(element: _IsListed, compiler: SQLCompiler, **options: Any) -> str:
    value, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({value} IN (SELECT value FROM json_each({values})))"  # noqa: S608 - compiled SQL


@compiles(_IsListed, "postgresql")
def _postgresql_is_listed(element: _IsListed, compiler: SQLCompiler, **options: Any) -> str:
    value, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"({value} = ANY ({values}))"


def is_any_of(value: Any, values: Collection[Any]) -> ColumnElement[bool]:
    """Returns the condition that a column is one of some values, however many they are."""
    parameter = bindparam(None, list(values), type_=List(value.type), unique=True)
    return _IsListed(value, parameter)


def is_any_pair(first: Any, second: Any, pairs: Collection[tuple[Any, Any]]) -> ColumnElement[bool]:
    """Returns the condition that two columns of texts are one of some pairs."""
    parameter = bindparam(None, list(pairs), type_=_PairsText(), unique=True)
    table = _tabulate(parameter)
    return tuple_(first, second).in_(select(table.c.first, table.c.second))


def is_listed(value: Any, name: str = "ids") -> ColumnElement[bool]:
    """Returns the condition that a column is one of the values of a named parameter.

    For statements that are built once; the parameter is a list.
    """
    return _IsListed(value, bindparam(name, type_=List(value.type), required=False))


class _Pairs(FunctionElement[Any]):
    """The pairs of a parameter as a table."""

    inherit_cache = True


@compiles(_Pairs, "sqlite")
def _sqlite_pairs(element: _Pairs, compiler: SQLCompiler, **options: Any) -> str:
    pairs = compiler.process(element.clauses, **options)
    columns = "json_extract(value, '$[0]') AS first, json_extract(value, '$[1]') AS second"
    return f"(SELECT {columns} FROM json_each({pairs}))"  # noqa: S608 - compiled SQL


@compiles(_Pairs, "postgresql")
def _postgresql_pairs(element: _Pairs, compiler: SQLCompiler, **options: Any) -> str:
    pairs = compiler.process(element.clauses, **options)
    table = f"json_array_elements(CAST({pairs} AS JSON))"
    return f"(SELECT value ->> 0 AS first, value ->> 1 AS second FROM {table})"  # noqa: S608


class _PairsText(TypeDecorator[Sequence[tuple[Any, Any]]]):
    """Type of a parameter that is a list of pairs."""

    impl = String
    cache_ok = True

    def process_bind_param(
        self, value: Sequence[tuple[Any, Any]] | None, _dialect: Dialect
    ) -> str | None:
        """Returns the pairs as JSON."""
        return None if value is None else json.dumps(list(value))


def _tabulate(parameter: BindParameter[Any]) -> TableValuedAlias:
    columns = column("first", String()), column("second", String())
    return _Pairs(parameter).table_valued(*columns, name="pairs")


def list_pairs(kind: TypeEngine[Any]) -> tuple[FromClause, ColumnElement[Any], ColumnElement[Any]]:
    """Returns the pairs of the parameter `pairs` as a table, and its two columns.

    Args:
        kind: Type of the values: texts or whole numbers.
    """
    pairs = _tabulate(bindparam("pairs", type_=_PairsText(), required=False))
    first, second = pairs.c.first, pairs.c.second
    if isinstance(kind, String):
        return pairs, first, second
    return pairs, cast(first, kind), cast(second, kind)
