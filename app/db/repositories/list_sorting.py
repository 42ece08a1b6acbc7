"""The keys by which lists of runs and experiments are sorted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Label, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.projects import UserRow
from app.db.models.summaries import DefinitionMemberRow
from app.db.repositories.filter_conditions import OF_EXPERIMENT, OF_RUN
from app.db.repositories.keyset_pages import KeyType, SortKey
from app.db.repositories.list_scope import ListScope

_TYPES: Final[Mapping[str, KeyType]] = {
    "seed": "number",
    "env_step": "number",
    "update": "number",
    "episode": "number",
    "created": "time",
    "started": "time",
    "finished": "time",
}
_NULLABLE: Final = frozenset({"cause", "started", "finished"})


def find_run_key(field: str) -> SortKey | None:
    """Returns the key of a field of runs; those of `OF_EXPERIMENT` need a join."""
    column = OF_RUN.get(field) or OF_EXPERIMENT.get(field)
    if column is None:
        return _find_user_key(RunRow.created_by) if field == "user" else None
    return SortKey(column, _TYPES.get(field, "text"), field in _NULLABLE)


def find_experiment_key(field: str) -> SortKey | None:
    """Returns the key of a field of experiments."""
    if field == "created":
        return SortKey(ExperimentRow.created_at, "time")
    if field == "user":
        return _find_user_key(ExperimentRow.created_by)
    column = ExperimentRow.id if field == "id" else OF_EXPERIMENT.get(field)
    return None if column is None else SortKey(column, "text")


def _find_user_key(column: InstrumentedAttribute[str]) -> SortKey:
    name = select(UserRow.name).where(UserRow.id == column).scalar_subquery()
    return SortKey(name, "text")


async def find_member_key(
    session: Session, path: str, scope: ListScope, project_id: Any, experiment_id: Any
) -> SortKey:
    """Returns the key of a member of the definition of the rows' experiments.

    Args:
        session: A session.
        path: The member.
        scope: What the caller may read: the member is a number if it is one in some definition.
        project_id: Column of the rows' projects.
        experiment_id: Column of the rows' experiments.
    """
    row = DefinitionMemberRow
    numbers = select(row.number).where(
        row.path == path, row.number.is_not(None), row.project_id.in_(scope.project_ids)
    )
    is_number = (await session.scalar(numbers.limit(1))) is not None
    value = row.number if is_number else row.text
    found = (
        select(value)
        .where(row.project_id == project_id, row.experiment_id == experiment_id, row.path == path)
        .correlate_except(DefinitionMemberRow)
        .scalar_subquery()
    )
    return SortKey(found, "number" if is_number else "text", is_nullable=True)


def label_keys(keys: Sequence[SortKey]) -> list[Label[Any]]:
    """Returns the values of keys as columns; two equal keys have different names."""
    return [key.expression.label(f"key_{place}") for place, key in enumerate(keys)]
