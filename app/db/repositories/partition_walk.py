"""The first rows of many parts of an index, each of which is in the order of a statistic.

A page needs few rows of most parts. So a few of each are read first; only parts whose last one read
comes before the last row of the page are read again, as far as the page may reach.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    String,
    bindparam,
    func,
    select,
    true,
)

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.models.summaries import SeriesSummaryRow, ThresholdCrossingRow
from app.db.prepared import Plan, Read, Rows, carry_out, prepare
from app.db.repositories.list_sorting import PageEnd, SortKey, is_after, order_by
from app.db.repositories.statistic_rows import STATISTICS
from palestra.contract.filters import Statistic

_EACH: Final = 8
"""Rows of each part that are read first, or twice its share of the page if that is more."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk along an index of a statistic.

    Attributes:
        statistic: The statistic.
        name_id: ID of the name of the series; `None` for a threshold.
        conditions: Further conditions on `RunRow`.
        is_descending: Whether the highest value comes first.
        after: End of the page before, whose value is a number.
        most: Largest number of rows.
    """

    statistic: Statistic
    name_id: int | None
    conditions: Sequence[ColumnElement[bool]]
    is_descending: bool
    after: PageEnd | None
    most: int


class WalkedRow(NamedTuple):
    """A row of a part."""

    value: Any
    run_id: str
    partition: int


class _Shape(NamedTuple):
    """What the statement of a walk depends on beside conditions and parameters."""

    dialect: str
    statistic: Statistic
    is_series: bool
    is_descending: bool
    has_after: bool
    has_bound: bool


async def list_first(session: Session, walk: Walk, partitions: Collection[int]) -> list[WalkedRow]:
    """Returns the first rows of all parts with a value that fit, in order.

    Args:
        session: A session.
        walk: The walk.
        partitions: The parts: setups of a series, or thresholds.
    """
    return await carry_out(session, plan_first(session.get_bind().dialect.name, walk, partitions))


def plan_first(dialect: str, walk: Walk, partitions: Collection[int]) -> Plan[list[WalkedRow]]:
    """Reads the first rows of all parts with a value that fit, in order."""
    each = min(walk.most, max(_EACH, 2 * walk.most // len(partitions)))
    if len(partitions) == 1:
        each = walk.most
    parts: dict[int, list[WalkedRow]] = {one: [] for one in partitions}
    for row in _list_rows((yield _list_reads(dialect, walk, partitions, each, None))):
        parts[row.partition].append(row)
    first = _merge(walk, parts)
    last = first[-1] if len(first) == walk.most else None
    cut = [
        one
        for one, rows in parts.items()
        if each <= len(rows) < walk.most and (last is None or _precedes(walk, rows[-1], last))
    ]
    if not cut:
        return first
    parts |= {one: [] for one in cut}
    for row in _list_rows((yield _list_reads(dialect, walk, cut, walk.most, last))):
        parts[row.partition].append(row)
    return _merge(walk, parts)


def _list_rows(found: Sequence[Rows]) -> list[WalkedRow]:
    return [WalkedRow(row.value, row.run_id, row.partition) for rows in found for row in rows]


def _precedes(walk: Walk, row: WalkedRow, other: WalkedRow) -> bool:
    return row > other if walk.is_descending else row < other


def _merge(walk: Walk, parts: Mapping[int, Sequence[WalkedRow]]) -> list[WalkedRow]:
    rows = [row for some in parts.values() for row in some]
    return sorted(rows, reverse=walk.is_descending)[: walk.most]


def _list_reads(
    dialect: str,
    walk: Walk,
    partitions: Collection[int],
    most: int,
    last: WalkedRow | None,
) -> list[Read]:
    """Returns the statements of the first rows of each part; those after `last` may be missing."""
    is_series = walk.name_id is not None
    has = walk.after is not None, last is not None
    shape = _Shape(dialect, walk.statistic, is_series, walk.is_descending, *has)
    values: dict[str, Any] = {"most": most}
    if walk.name_id is not None:
        values["name_id"] = walk.name_id
    if walk.after is not None:
        values |= {"after_value": walk.after.value, "after_id": walk.after.id}
    if last is not None:
        values["bound"] = last.value
    build = _build_part if dialect == "sqlite" else _build_lateral
    statement = (
        prepare(build(shape, walk.conditions), dialect) if walk.conditions else _build_once(shape)
    )
    if dialect == "sqlite":
        # One call of the connection's thread; a statement of all parts takes longer to write.
        return [Read(statement, {**values, "partition": one}) for one in partitions]
    return [Read(statement, {**values, "partitions": list(partitions)})]


@cache
def _build_once(shape: _Shape) -> Select[Any]:
    return _build_part(shape, ()) if shape.dialect == "sqlite" else _build_lateral(shape, ())


def _build_lateral(shape: _Shape, conditions: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """Returns the query of all parts, whose IDs are one parameter."""
    asked = _declare("partitions", ARRAY(BigInteger))
    given = func.unnest(asked).table_valued("value", name="given").render_derived()
    part = _build_part(shape, conditions, given.c.value).lateral("part")
    columns = part.c.run_id, part.c.value, given.c.value.label("partition")
    return select(*columns).select_from(given.join(part, true()))


def _build_part(
    shape: _Shape, conditions: Sequence[ColumnElement[bool]], partition: Any = None
) -> Select[Any]:
    """Returns the query of one part, that of the parameter `partition` or of a column."""
    row: Any = SeriesSummaryRow if shape.is_series else ThresholdCrossingRow
    place = row.setup_id if shape.is_series else row.threshold_id
    value = STATISTICS[shape.statistic]
    columns = [row.run_id.label("run_id"), value.label("value")]
    if partition is None:
        partition = _declare("partition", BigInteger())
        columns.append(place.label("partition"))
    query = select(*columns).where(place == partition, value.is_not(None))
    if shape.is_series:
        query = query.where(row.name_id == _declare("name_id", BigInteger()))
    key = SortKey(value, "number")
    if shape.has_after:
        end = PageEnd(_declare("after_value", value.type), _declare("after_id", String()))
        query = query.where(is_after(key, row.run_id, end, is_descending=shape.is_descending))
    if shape.has_bound:
        bound = _declare("bound", value.type)
        query = query.where(value >= bound if shape.is_descending else value <= bound)
    if conditions:
        query = query.join(RunRow, RunRow.id == row.run_id).where(*conditions)
    order = order_by(key, row.run_id, is_descending=shape.is_descending)
    return query.order_by(*order).limit(_declare("most", Integer()))


def _declare(name: str, kind: Any) -> Any:
    """Returns a parameter that may be absent while the statement is compiled."""
    return bindparam(name, type_=kind, required=False)
