"""Reads evaluations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Select, func, select
from sqlalchemy.orm import InstrumentedAttribute, aliased
from sqlalchemy.sql import ColumnElement

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.repositories.experiments import ExperimentKey, matches_experiments
from app.db.repositories.keyset_pages import select_page
from app.domain.paging import Keyset
from palestra.contract.names import EvaluationSource

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "created_at": EvaluationRow.created_at,
    "env_step": EvaluationRow.env_step,
}

_FARTHEST = (EvaluationRow.env_step.desc(), EvaluationRow.update.desc(), EvaluationRow.id.desc())


async def list_page(
    session: Session,
    run_id: str,
    keys: Keyset,
    *,
    superseded: bool,
    source: EvaluationSource | None = None,
) -> Sequence[EvaluationRow]:
    """Returns a page of a run's evaluations and one row more.

    Superseded evaluations are included on request; `source` selects one source.
    """
    query = select(EvaluationRow).where(EvaluationRow.run_id == run_id)
    if source is not None:
        query = query.where(EvaluationRow.source == source)
    if not superseded:
        query = query.where(EvaluationRow.superseded.is_(False))
    return (await session.scalars(select_page(query, keys, COLUMNS, EvaluationRow.id))).all()


async def load_job_progress(session: Session, job_id: str) -> tuple[int, frozenset[str]]:
    """Returns how many evaluations of snapshots a job has made, and of which ones."""
    query = (
        select(EvaluationRow.snapshot_id, func.count())
        .where(EvaluationRow.job_id == job_id, EvaluationRow.snapshot_id.is_not(None))
        .group_by(EvaluationRow.snapshot_id)
    )
    counts = (await session.execute(query)).all()
    return sum(number for _, number in counts), frozenset(
        snapshot_id for snapshot_id, _ in counts if snapshot_id is not None
    )


async def list_latest_scores(
    session: Session, keys: Collection[ExperimentKey]
) -> list[tuple[str, str, float]]:
    """Returns (project, experiment, mean return) of each run's latest evaluation, if finite."""
    mine = matches_experiments(EvaluationRow.project_id, EvaluationRow.experiment_id, keys)
    rows = await session.scalars(_first_of_each(mine, order=_FARTHEST))
    return [(row.project_id, row.experiment_id, row.score) for row in rows if row.score is not None]


def _first_of_each(
    *conditions: ColumnElement[bool], order: tuple[ColumnElement[Any], ...]
) -> Select[EvaluationRow]:
    rank = func.row_number().over(partition_by=EvaluationRow.run_id, order_by=order).label("rank")
    counts = (
        EvaluationRow.superseded.is_(False),
        EvaluationRow.source == EvaluationSource.EVALUATION,
    )
    ranked = select(EvaluationRow, rank).where(*counts, *conditions).subquery()
    return select(aliased(EvaluationRow, ranked)).where(ranked.c.rank == 1)
