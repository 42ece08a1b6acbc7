"""The rows that hold what lists sort by: summaries of series, and crossings of thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import ColumnElement, Float, Select, case, cast, func, null, select
from sqlalchemy.orm import InstrumentedAttribute

from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.summaries import SeriesSummaryRow, ThresholdCrossingRow
from app.db.repositories.list_scope import ListScope
from palestra.contract.filters import Kind, Statistic

Column = InstrumentedAttribute[Any]

STATISTICS: Final[Mapping[Statistic, Column]] = {
    "last": SeriesSummaryRow.last,
    "best": SeriesSummaryRow.best,
    "mean10": SeriesSummaryRow.mean10,
    "count": SeriesSummaryRow.points,
    "env_step": ThresholdCrossingRow.env_step,
    "seconds": ThresholdCrossingRow.seconds,
    "runs": ThresholdCrossingRow.run_id,
}


class Named(Protocol):
    """A term, a key or a column of a list."""

    @property
    def field(self) -> str:
        """Name of the series or threshold."""

    @property
    def kind(self) -> Kind:
        """What the name is of."""

    @property
    def statistic(self) -> Statistic:
        """Which statistic of it."""


@dataclass(frozen=True, slots=True)
class StatisticRows:
    """Rows of a statistic, at most one for each run.

    Attributes:
        run_id: The run.
        value: The statistic, which may be NULL.
        condition: Condition of the rows of the series or threshold.
        partition: Column within whose values an index is in the order of the statistic.
    """

    run_id: Column
    value: Column
    condition: ColumnElement[bool]
    partition: Column


def find_rows(named: Named, scope: ListScope) -> StatisticRows | None:
    """Returns the rows of a statistic; `None` if the caller's projects have nothing of the name."""
    value = STATISTICS[named.statistic]
    if named.kind == "threshold":
        row = ThresholdCrossingRow
        ids = scope.thresholds.get(named.field)
        if ids is None:
            return None
        return StatisticRows(row.run_id, value, row.threshold_id.in_(ids), row.threshold_id)
    name_id = scope.series.get(named.field)
    if name_id is None:
        return None
    is_of_series = SeriesSummaryRow.name_id == name_id
    return StatisticRows(SeriesSummaryRow.run_id, value, is_of_series, SeriesSummaryRow.setup_id)


def select_over_runs(named: Named, scope: ListScope) -> Any:
    """Returns a statistic of an experiment: of a series the mean over its runs.

    Of a crossing it is the median, where runs that have not reached the threshold come after all
    others, so it is NULL while half of the runs have not. The mean or the median over those that
    have would favour experiments of which some runs never reach it. The statistic `runs` is the
    number of those that have.
    """
    rows = find_rows(named, scope)
    if rows is None:
        return select(cast(null(), Float(53))).scalar_subquery()
    if named.kind == "threshold" and named.statistic != "runs":
        return _select_median(rows)
    if named.statistic == "runs":
        return _select_of_runs(func.count(rows.run_id), rows).scalar_subquery()
    return _select_of_runs(func.avg(_to_float(rows.value)), rows).scalar_subquery()


def _select_median(rows: StatisticRows) -> Any:
    """Returns the median of a value over the runs of an experiment, where NULL is the highest."""
    ranked = _select_of_runs(
        _to_float(rows.value).label("value"),
        rows,
        func.row_number().over(order_by=(rows.value.is_(None), rows.value)).label("place"),
        func.count().over().label("total"),
    ).subquery()
    of_middle = (2 * ranked.c.place - ranked.c.total).between(0, 2)
    median = case((func.count(ranked.c.value) == func.count(), func.avg(ranked.c.value)))
    return select(median).select_from(ranked).where(of_middle).scalar_subquery()


def _select_of_runs(value: Any, rows: StatisticRows, *others: Any) -> Select[Any]:
    """Selects from the runs of an experiment, with their rows of the statistic if they have one."""
    return (
        select(value, *others)
        .select_from(RunRow)
        .outerjoin(rows.run_id.class_, (rows.run_id == RunRow.id) & rows.condition)
        .where(
            RunRow.project_id == ExperimentRow.project_id,
            RunRow.experiment_id == ExperimentRow.id,
        )
        .correlate(ExperimentRow)
    )


def _to_float(value: Column) -> ColumnElement[float]:
    """PostgreSQL answers decimals for the mean of whole numbers."""
    return cast(value, Float(53))
