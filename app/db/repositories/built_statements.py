"""Executes statements that are built once for many executions."""

from collections.abc import Sequence
from typing import Any

from app.db.engine import Session


async def fetch(session: Session, statement: Any, **values: Any) -> Sequence[Any]:
    """Executes a statement that was built once.

    Building it for each decision would cost more than the database takes to answer.
    """
    return (await (await session.connection()).execute(statement, values)).all()
