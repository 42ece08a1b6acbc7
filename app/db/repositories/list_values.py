"""Reads the values of further columns of lists."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.summaries import DefinitionMemberRow, SeriesSummaryRow, ThresholdCrossingRow
from app.db.repositories.experiments import ExperimentKey, matches_experiments


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a series; the names are those of the statistics in filters."""

    last: float | None
    best: float | None
    mean10: float | None
    count: int


async def load_summaries(
    session: Session, run_ids: Collection[str], series: Mapping[int, str]
) -> dict[tuple[str, str], Summary]:
    """Returns the summaries of some series of runs by run and name.

    Args:
        session: A session.
        run_ids: The runs.
        series: Names of the series by ID.
    """
    if not series or not run_ids:
        return {}
    stored = SeriesSummaryRow
    statistics = (stored.last, stored.best, stored.mean10, stored.points)
    query = select(stored.run_id, stored.name_id, *statistics)
    return {
        (row[0], series[row[1]]): Summary(*row[2:])
        for row in await session.execute(
            query.where(is_any_of(stored.run_id, run_ids), stored.name_id.in_(series))
        )
    }


@dataclass(frozen=True, slots=True)
class CrossingValues:
    """The first crossing of a threshold; the names are those of the statistics in filters."""

    env_step: int
    seconds: float


async def load_crossings(
    session: Session, run_ids: Collection[str], thresholds: Mapping[str, Collection[int]]
) -> dict[tuple[str, str], CrossingValues]:
    """Returns the first crossings of some thresholds by run and name.

    Args:
        session: A session.
        run_ids: The runs.
        thresholds: IDs of the thresholds by name.
    """
    names = {one: name for name, ids in thresholds.items() for one in ids}
    if not names or not run_ids:
        return {}
    row = ThresholdCrossingRow
    query = select(row.run_id, row.threshold_id, row.env_step, row.seconds)
    return {
        (run_id, names[threshold_id]): CrossingValues(env_step, seconds)
        for run_id, threshold_id, env_step, seconds in await session.execute(
            query.where(is_any_of(row.run_id, run_ids), row.threshold_id.in_(names))
        )
    }


async def load_members(
    session: Session, keys: Collection[ExperimentKey], paths: Collection[str]
) -> list[tuple[ExperimentKey, str, Any]]:
    """Returns experiment, path and value of members of the definitions of experiments."""
    if not paths:
        return []
    row = DefinitionMemberRow
    query = select(row.project_id, row.experiment_id, row.path, row.text, row.number).where(
        matches_experiments(row.project_id, row.experiment_id, keys), row.path.in_(paths)
    )
    return [
        ((project_id, experiment_id), path, _read(text) if number is not None else text)
        for project_id, experiment_id, path, text, number in await session.execute(query)
    ]


def _read(text: str) -> int | float:
    value: int | float = json.loads(text)
    return value
