"""The waiting jobs of a pool: numbers by class, the assigned ones, and those without a place."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, and_, case, func, or_, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.jobs import JobRow
from palestra.contract.names import PriorityClass
from palestra.contract.states import JobState

_WAITING: Final = [JobState.QUEUED, JobState.LOST]
_CLASSES: Final = list(PriorityClass)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFilter:
    """Which waiting jobs of a pool to list; `None` takes all."""

    pool: str
    project_ids: frozenset[str]
    priority_class: PriorityClass | None = None
    user_id: str | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions that a job matches."""
        found = [
            JobRow.pool == self.pool,
            JobRow.state.in_(_WAITING),
            JobRow.project_id.in_(self.project_ids),
        ]
        if self.priority_class is not None:
            found.append(JobRow.priority_class == self.priority_class)
        if self.user_id is not None:
            found.append(JobRow.created_by == self.user_id)
        return found


RestKey = tuple[int, datetime, str]
"""Where a job without a place stands: number of its class, time at which it was queued, ID."""


def get_rest_key(job: JobRow) -> RestKey:
    """Returns where a job stands among those without a place."""
    return _CLASSES.index(job.priority_class), job.queued_at, job.id


async def count_by_class(
    session: Session, pool: str, project_ids: Collection[str], user_id: str
) -> Mapping[PriorityClass, tuple[int, int]]:
    """Returns, by class, how many jobs of some projects wait, and how many are the person's."""
    mine = func.count().filter(JobRow.created_by == user_id)
    query = select(JobRow.priority_class, func.count(), mine).where(
        *WaitingFilter(pool=pool, project_ids=frozenset(project_ids)).conditions()
    )
    rows = await session.execute(query.group_by(JobRow.priority_class))
    return {priority_class: (int(every), int(own)) for priority_class, every, own in rows}


async def filter_ids(session: Session, wanted: WaitingFilter, ids: Collection[str]) -> set[str]:
    """Returns which of the given jobs match."""
    if not ids:
        return set()
    query = select(JobRow.id).where(*wanted.conditions(), is_any_of(JobRow.id, ids))
    return set(await session.scalars(query))


async def list_rest(
    session: Session,
    wanted: WaitingFilter,
    excluded: Collection[str],
    after: RestKey | None,
    limit: int,
) -> Sequence[JobRow]:
    """Returns waiting jobs by class and age, after a key, without the excluded ones."""
    ranks = {priority_class: place for place, priority_class in enumerate(_CLASSES)}
    rank = case(ranks, value=JobRow.priority_class)
    query = select(JobRow).where(*wanted.conditions(), JobRow.id.not_in(excluded))
    if after is not None:
        number, queued_at, job_id = after
        query = query.where(
            or_(
                rank > number,
                and_(rank == number, JobRow.queued_at > queued_at),
                and_(rank == number, JobRow.queued_at == queued_at, JobRow.id > job_id),
            )
        )
    ordered = query.order_by(rank, JobRow.queued_at, JobRow.id).limit(limit)
    return (await session.scalars(ordered)).all()
