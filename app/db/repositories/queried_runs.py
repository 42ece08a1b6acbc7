"""Reads what queries of curves need beside the points: runs, their definitions and counts."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import func, select, tuple_

from app.db.engine import Session
from app.db.models.curves import EvaluationRow, SeriesRow
from app.db.models.experiments import ExperimentRow, RunRow
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
    found: dict[str, QueriedRun] = {}
    for some in split_values(run_ids):
        query = select(
            RunRow.id,
            RunRow.project_id,
            RunRow.experiment_id,
            RunRow.seed,
            RunRow.state,
            RunRow.fence,
        ).where(RunRow.id.in_(some))
        found.update((row[0], QueriedRun(*row)) for row in await session.execute(query))
    return found


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


async def count_points(
    session: Session, keys: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], int]:
    """Returns the number of points of each of the series (run, name) that exists."""
    found: dict[tuple[str, str], int] = {}
    for some in split_values(keys):
        query = select(SeriesRow.run_id, SeriesRow.name, SeriesRow.points).where(
            tuple_(SeriesRow.run_id, SeriesRow.name).in_(some)
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
) -> dict[str, tuple[int, int]]:
    """Returns how many evaluations the runs have, and how many of them count."""
    found: dict[str, tuple[int, int]] = {}
    for some in split_values(run_ids):
        counting = func.count(1).filter(EvaluationRow.superseded.is_(False))
        query = (
            select(EvaluationRow.run_id, func.count(), counting)
            .where(EvaluationRow.run_id.in_(some))
            .group_by(EvaluationRow.run_id)
        )
        found.update((row[0], (row[1], row[2])) for row in await session.execute(query))
    return found
