"""Orders lists by any key, in pages: rows without a value come last in both directions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Label, Select, and_, case, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import EPOCH
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.projects import UserRow
from app.db.models.summaries import DefinitionMemberRow
from app.db.repositories.filter_conditions import OF_EXPERIMENT, OF_RUN
from app.domain.paging import Key, Keys, refuse_cursor

KeyType = Literal["text", "number", "time"]

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


def build_member_key(path: str, project_id: Any, experiment_id: Any, *, is_number: bool) -> SortKey:
    """Returns the key of a member of the definition of the rows' experiments."""
    row = DefinitionMemberRow
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


def sort_page(
    query: Select[Any],
    keys: Sequence[SortKey],
    row_id: Any,
    *,
    after: PageEnd | None,
    limit: int,
) -> Select[Any]:
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
