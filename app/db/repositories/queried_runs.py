"""Reads what queries of curves need beside the points: runs, their definitions and counts."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import String, func, literal_column, select, tuple_

from app.db.engine import Session
from app.db.models.curves import EvaluationRow, SeriesRow
from app.db.models.events import EventRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.repositories.combined_reads import Read, fetch_all
from app.db.repositories.listed_values import is_listed, list_pairs, write_list, write_pairs
from app.db.repositories.value_lists import split_values


class QueriedRun(NamedTuple):
    """What queries need of a run."""

    id: str
    project_id: str
    experiment_id: str
    seed: int
    state: str
    fence: int


async def load_runs(session: Session, run_ids: Collection[str]) -> dict[str, QueriedRun]:
    """Returns the runs that exist."""
    dialect = session.get_bind().dialect.name
    (rows,) = await fetch_all(
        session, [Read(_select_runs(dialect), write_list(dialect, list(run_ids)))]
    )
    return {row[0]: QueriedRun(*row) for row in rows}


@cache
def _select_runs(dialect: str) -> Any:
    columns = (getattr(RunRow, name) for name in QueriedRun._fields)
    return select(*columns).where(is_listed(dialect, RunRow.id))


class QueryCounts(NamedTuple):
    """What identifies the data of a query.

    Attributes:
        points: Number of points of each series that exists.
        evaluations: Per run with evaluations, how many it has, and how many of them count.
        newest_event: The ID of the last event; 0 without one.
    """

    points: Mapping[tuple[str, str], int]
    evaluations: Mapping[str, tuple[int, int]]
    newest_event: int


async def load_counts(
    session: Session, keys: Collection[tuple[str, str]], run_ids: Collection[str]
) -> QueryCounts:
    """Returns the counts of series (run, name) and of runs."""
    dialect = session.get_bind().dialect.name
    points, evaluations, events = await fetch_all(
        session,
        [
            Read(_select_points(dialect), write_pairs(dialect, list(keys))),
            Read(_select_evaluations(dialect), write_list(dialect, list(run_ids))),
            Read(_select_newest_event(), {}),
        ],
    )
    return QueryCounts(
        {(row.run_id, row.name): row.points for row in points},
        {row.run_id: (row.every, row.counting) for row in evaluations},
        events[0].newest or 0,
    )


@cache
def _select_points(dialect: str) -> Any:
    asked, run_id, name = list_pairs(dialect, String(), String())
    return (
        select(SeriesRow.run_id, SeriesRow.name, SeriesRow.points)
        .select_from(asked)
        .join(SeriesRow, (SeriesRow.run_id == run_id) & (SeriesRow.name == name))
    )


@cache
def _select_evaluations(dialect: str) -> Any:
    counting = func.count(literal_column("1")).filter(~EvaluationRow.superseded)
    every = func.count().label("every")
    return (
        select(EvaluationRow.run_id, every, counting.label("counting"))
        .where(is_listed(dialect, EvaluationRow.run_id))
        .group_by(EvaluationRow.run_id)
    )


@cache
def _select_newest_event() -> Any:
    return select(func.max(EventRow.id).label("newest"))


async def list_run_ids(
    session: Session, project_ids: Collection[str], experiment_id: str, limit: int
) -> list[str] | None:
    """Returns the runs of an experiment by seed; `None` if no project has the experiment."""
    owner = select(ExperimentRow.project_id).where(
        ExperimentRow.project_id.in_(project_ids), ExperimentRow.id == experiment_id
    )
    owners = (await session.scalars(owner)).all()
    if not owners:
        return None
    query = (
        select(RunRow.id)
        .where(RunRow.project_id.in_(owners), RunRow.experiment_id == experiment_id)
        .order_by(RunRow.project_id, RunRow.seed, RunRow.replicate)
        .limit(limit)
    )
    return list(await session.scalars(query))


async def load_definitions(
    session: Session, experiments: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Returns the definitions of experiments (project, ID) as JSON."""
    found: dict[tuple[str, str], str] = {}
    for some in split_values(experiments):
        query = select(ExperimentRow.project_id, ExperimentRow.id, ExperimentRow.definition).where(
            tuple_(ExperimentRow.project_id, ExperimentRow.id).in_(some)
        )
        found.update(((row[0], row[1]), row[2]) for row in await session.execute(query))
    return found


async def list_names(session: Session, run_ids: Collection[str]) -> set[str]:
    """Returns the names of all series of the runs."""
    found: set[str] = set()
    for some in split_values(run_ids):
        query = select(SeriesRow.name).where(SeriesRow.run_id.in_(some)).distinct()
        found.update(await session.scalars(query))
    return found


async def count_evaluations(
    session: Session, run_ids: Collection[str]
) -> Mapping[str, tuple[int, int]]:
    """Returns how many evaluations the runs have, and how many of them count."""
    return (await load_counts(session, [], run_ids)).evaluations
