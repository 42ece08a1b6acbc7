"""Inserts that skip rows which exist already, on both dialects."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite

from app.db.engine import Session
from app.db.models.base import Base


def insert_new(session: Session, model: type[Base], rows: list[dict[str, Any]]) -> Any:
    """Returns an insert of `rows` that skips existing ones (`ON CONFLICT DO NOTHING`).

    Add `returning` to the statement to learn which rows were inserted.
    """
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    return dialect.insert(model).values(rows).on_conflict_do_nothing()
