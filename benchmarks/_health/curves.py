"""Recorded trainings on a grid of few buckets: what the rules read, small enough to be kept."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from app.metrics.columns import Columns
from app.metrics.grid import Bound, Grid, downsample
from app.metrics.health import rules
from app.metrics.health.records import HealthSeries, TrainingRecord
from app.metrics.sort_records import NumberedRecord, sort
from palestra.contract.names import EvaluationSource
from palestra.contract.telemetry import RunRecord

DIGITS: Final = 4
"""Significant digits that are kept of a value."""
_COLUMNS: Final = ("env_step", "mean", "min", "max", "nonfinite")


def read_training(
    definition: Mapping[str, Any], records: Sequence[RunRecord], buckets: int
) -> TrainingRecord:
    """Returns what the rules see of the records of one run, as the server would read them."""
    (found,) = sort(NumberedRecord(*one) for one in enumerate(records)).values()
    names = rules.list_series(sorted(found.series))
    series = {name: _bucket(found.series[name], buckets) for name in names}
    evaluations = [
        (one.env_step, one.mean)
        for _, one in found.evaluations
        if one.source is EvaluationSource.EVALUATION
    ]
    assert found.progress is not None
    return TrainingRecord.from_definition(
        definition,
        {name: one for name, one in series.items() if one is not None},
        evaluations,
        found.progress.env_step,
    )


def to_json(record: TrainingRecord) -> dict[str, Any]:
    """Returns a record as JSON, its values rounded to `DIGITS` digits."""
    return {
        "series": {
            name: {column: _round(getattr(one, column)) for column in _COLUMNS}
            for name, one in record.series.items()
        },
        "evaluations": [
            _round(record.evaluation_steps.astype(float)),
            _round(record.evaluation_means),
        ],
        "env_steps": record.env_steps,
    }


def from_json(definition: Mapping[str, Any], stored: Mapping[str, Any]) -> TrainingRecord:
    """Returns the record that `to_json` stored."""
    series = {
        name: HealthSeries(
            **{column: _to_array(one[column]) for column in _COLUMNS[:-1]},
            nonfinite=np.array(one["nonfinite"], np.int64),
        )
        for name, one in stored["series"].items()
    }
    steps, means = stored["evaluations"]
    evaluations = [
        (int(step), math.nan if mean is None else mean)
        for step, mean in zip(steps, means, strict=True)
    ]
    return TrainingRecord.from_definition(definition, series, evaluations, stored["env_steps"])


def _bucket(columns: Columns, buckets: int) -> HealthSeries | None:
    low, high = int(columns.env_step.min()), int(columns.env_step.max())
    grid = Grid.cover([Bound(low)], [Bound(high)], buckets)
    found = downsample(columns.env_step, columns.value, grid)
    statistics = found.mean, found.min, found.max
    return HealthSeries.from_buckets(grid.centres, found.n, statistics, found.nonfinite)


def _round(values: Any) -> list[float | None]:
    return [
        None if not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
        for value in values.tolist()
    ]


def _to_array(values: Sequence[float | None]) -> Any:
    return np.array([math.nan if value is None else value for value in values], np.float64)
