"""Inserts that skip or update rows which exist already, on both dialects."""

from typing import Any

from sqlalchemy import Select, Table
from sqlalchemy.dialects import postgresql, sqlite

from app.db.engine import Session
from app.db.models.base import Base


def insert_new(
    session: Session, model: type[Base], rows: list[dict[str, Any]] | None = None
) -> Any:
    """Returns an insert of rows that skips existing ones (`ON CONFLICT DO NOTHING`).

    Add `returning` to the statement to learn which rows were inserted. Many rows are better passed
    to `execute`.
    """
    return _insert(session, model, rows).on_conflict_do_nothing()


def insert_new_from(
    session: Session, model: type[Base], columns: list[str], query: Select[Any]
) -> Any:
    """Returns an insert of the rows of a query that skips existing ones.

    Args:
        session: A writing session.
        model: The table.
        columns: Names of the columns of the query.
        query: The rows; it needs a condition, without which SQLite reads `ON` as one of a join.
    """
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    return dialect.insert(model).from_select(columns, query).on_conflict_do_nothing()


def insert_or_update(
    session: Session, model: type[Base], rows: list[dict[str, Any]], values: dict[str, Any]
) -> Any:
    """Returns an insert of `rows` that sets `values` in the rows that exist already."""
    statement = _insert(session, model, rows)
    return statement.on_conflict_do_update(index_elements=_key(model), set_=values)


def insert_or_replace(session: Session, model: type[Base], rows: list[dict[str, Any]]) -> Any:
    """Returns an insert of `rows` that replaces the other columns of the rows that exist already.

    Args:
        session: A writing session.
        model: The table.
        rows: Values of the same columns in each row.
    """
    statement = _insert(session, model, rows)
    key = _key(model)
    replaced = {name: statement.excluded[name] for name in rows[0] if name not in key}
    return statement.on_conflict_do_update(index_elements=key, set_=replaced)


def insert_or_add(session: Session, model: type[Base], row: dict[str, Any], column: str) -> Any:
    """Returns an insert of `row` that adds its value of `column` to a row that exists already."""
    statement = _insert(session, model, [row])
    total = getattr(model, column) + statement.excluded[column]
    return statement.on_conflict_do_update(index_elements=_key(model), set_={column: total})


def build_insert(dialect: str, table: Table) -> Any:
    """Returns an insert of a dialect without values, which is given them when it is executed."""
    return (sqlite if dialect == "sqlite" else postgresql).insert(table)


def _insert(session: Session, model: type[Base], rows: list[dict[str, Any]] | None) -> Any:
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    statement = dialect.insert(model)
    return statement if rows is None else statement.values(rows)


def _key(model: type[Base]) -> list[str]:
    return [column.name for column in model.__table__.primary_key]
