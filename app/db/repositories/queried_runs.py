"""Reads what queries of curves need beside the points: runs, their definitions and counts."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import String, func, literal_column, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of, is_any_pair, is_listed, list_pairs
from app.db.models.curves import EvaluationRow, SeriesRow
from app.db.models.events import EventRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.prepared import Read, fetch_all
from palestra.contract.states import RunState


class QueriedRun(NamedTuple):
    """What queries need of a run."""

    id: str
    project_id: str
    experiment_id: str
    seed: int
    state: RunState
    fence: int


async def load_runs(session: Session, run_ids: Collection[str]) -> dict[str, QueriedRun]:
    """Returns the runs that exist."""
    (rows,) = await fetch_all(session, [Read(_select_runs(), {"ids": run_ids})])
    return {row[0]: QueriedRun(*row) for row in rows}


@cache
def _select_runs() -> Any:
    columns = (getattr(RunRow, name) for name in QueriedRun._fields)
    return select(*columns).where(is_listed(RunRow.id))


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
    points, evaluations, events = await fetch_all(
        session,
        [
            Read(_select_points(), {"pairs": keys}),
            Read(_select_evaluations(), {"ids": run_ids}),
            Read(_select_newest_event(), {}),
        ],
    )
    return QueryCounts(
        {(row.run_id, row.name): row.points for row in points},
        {row.run_id: (row.every, row.counting) for row in evaluations},
        events[0].newest or 0,
    )


@cache
def _select_points() -> Any:
    pairs, run_id, name = list_pairs(String())
    return (
        select(SeriesRow.run_id, SeriesRow.name, SeriesRow.points)
        .select_from(pairs)
        .join(SeriesRow, (SeriesRow.run_id == run_id) & (SeriesRow.name == name))
    )


@cache
def _select_evaluations() -> Any:
    counting = func.count(literal_column("1")).filter(~EvaluationRow.superseded)
    every = func.count().label("every")
    return (
        select(EvaluationRow.run_id, every, counting.label("counting"))
        .where(is_listed(EvaluationRow.run_id))
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
    if not experiments:
        return {}
    query = select(ExperimentRow.project_id, ExperimentRow.id, ExperimentRow.definition).where(
        is_any_pair(ExperimentRow.project_id, ExperimentRow.id, experiments)
    )
    return {(row[0], row[1]): row[2] for row in await session.execute(query)}


async def list_names(session: Session, run_ids: Collection[str]) -> set[str]:
    """Returns the names of all series of the runs."""
    if not run_ids:
        return set()
    query = select(SeriesRow.name).where(is_any_of(SeriesRow.run_id, run_ids)).distinct()
    return set(await session.scalars(query))


async def count_evaluations(
    session: Session, run_ids: Collection[str]
) -> Mapping[str, tuple[int, int]]:
    """Returns how many evaluations the runs have, and how many of them count."""
    return (await load_counts(session, [], run_ids)).evaluations
