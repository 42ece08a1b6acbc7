"""Orders lists by any key, in pages: rows without a value come last in both directions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Select, and_, case, or_, select
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
    """What rows are ordered by; rows with the same value are ordered by their ID.

    Attributes:
        expression: The value.
        type: Its type.
        is_nullable: Whether rows may have no value.
    """

    expression: Any
    type: KeyType
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class PageEnd:
    """The end of the page before: value and ID of its last row.

    In the order of several keys the value is a tuple.
    """

    value: Any
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


def sort_page(
    query: Select[Any],
    key: SortKey,
    row_id: InstrumentedAttribute[str],
    *,
    is_descending: bool,
    after: PageEnd | None,
    limit: int,
) -> Select[Any]:
    """Returns the query of one page and one row more."""
    if after is not None:
        query = query.where(is_after(key, row_id, after, is_descending=is_descending))
    order = order_by(key, row_id, is_descending=is_descending)
    return query.order_by(*order).limit(limit + 1)


def order_by(
    key: SortKey, row_id: InstrumentedAttribute[str], *, is_descending: bool
) -> list[ColumnElement[Any]]:
    """Returns what a query is ordered by."""
    order: list[ColumnElement[Any]] = []
    if key.is_nullable:
        order.append(case((key.expression.is_(None), 1), else_=0))
    order += (
        [key.expression.desc(), row_id.desc()] if is_descending else [key.expression, row_id.asc()]
    )
    return order


def is_after(
    key: SortKey, row_id: InstrumentedAttribute[str], after: PageEnd, *, is_descending: bool
) -> ColumnElement[bool]:
    """Returns the condition that a row comes after the page before."""
    is_next = row_id < after.id if is_descending else row_id > after.id
    if after.value is None:
        return and_(key.expression.is_(None), is_next)
    beyond = key.expression < after.value if is_descending else key.expression > after.value
    same = and_(key.expression == after.value, is_next)
    if key.is_nullable:
        return or_(beyond, same, key.expression.is_(None))
    # The first condition alone lets an index begin at the place.
    bound = key.expression <= after.value if is_descending else key.expression >= after.value
    return and_(bound, or_(beyond, same))


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
    values = tuple(map(_read_value, keys, key_types))
    return PageEnd(values if len(values) > 1 else values[0], row_id)


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
