"""Reads evaluations."""

from collections.abc import Collection, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import aliased
from sqlalchemy.sql import ColumnElement

from app.db.engine import Session
from app.db.models.curves import Evaluation

_FARTHEST = (Evaluation.env_step.desc(), Evaluation.update.desc(), Evaluation.id.desc())


async def of_run(session: Session, run_id: str, *, include_superseded: bool) -> Sequence[Evaluation]:
    """Returns a run's evaluations, in the order of training."""
    query = select(Evaluation).where(Evaluation.run_id == run_id)
    if not include_superseded:
        query = query.where(Evaluation.superseded.is_(False))
    return (await session.scalars(query.order_by(Evaluation.env_step, Evaluation.update, Evaluation.fence, Evaluation.id))).all()


async def latest(session: Session, run_ids: Collection[str]) -> Sequence[Evaluation]:
    """Returns the farthest evaluation of each run."""
    return await _first_of_each(session, run_ids, _FARTHEST)


async def best(session: Session, run_ids: Collection[str]) -> Sequence[Evaluation]:
    """Returns the evaluation with the highest finite mean return of each run."""
    return await _first_of_each(session, run_ids, (Evaluation.score.desc(), *_FARTHEST), Evaluation.score.is_not(None))


async def _first_of_each(
    session: Session, run_ids: Collection[str], order: tuple[ColumnElement[object], ...], *conditions: ColumnElement[bool]
) -> Sequence[Evaluation]:
    rank = func.row_number().over(partition_by=Evaluation.run_id, order_by=order).label("rank")
    ranked = select(Evaluation, rank).where(Evaluation.run_id.in_(run_ids), Evaluation.superseded.is_(False), *conditions).subquery()
    first = aliased(Evaluation, ranked)
    return (await session.scalars(select(first).where(ranked.c.rank == 1))).all()
