"""The jobs on which one request acts together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, func, or_, select

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories.jobs import JobFilter, matches_filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllable:
    """On which jobs a caller may act."""

    user_id: str
    all_in: frozenset[str]
    """Projects in which it may act on the jobs of everybody."""
    own_in: frozenset[str]
    """Projects in which it may act on its own jobs."""

    def condition(self) -> ColumnElement[bool]:
        """The condition that the caller may act on a job."""
        own = and_(JobRow.project_id.in_(self.own_in), JobRow.created_by == self.user_id)
        return or_(JobRow.project_id.in_(self.all_in), own)


async def count(
    session: Session,
    project_ids: Collection[str],
    wanted: JobFilter,
    mine: Controllable,
    after: str,
) -> tuple[int, int]:
    """Returns how many jobs match, and on how many of them the caller may act.

    Jobs up to the ID `after` are left out.
    """
    may_act = mine.condition()
    query = select(func.count(), func.count().filter(may_act)).where(
        *matches_filter(project_ids, wanted), JobRow.id > after
    )
    every, permitted = (await session.execute(query)).one()
    return int(every), int(permitted)


async def list_ids(
    session: Session,
    project_ids: Collection[str],
    wanted: JobFilter,
    mine: Controllable,
    after: str,
    limit: int,
) -> Sequence[str]:
    """Returns the first matching jobs on which the caller may act, by ID."""
    query = select(JobRow.id).where(
        *matches_filter(project_ids, wanted), mine.condition(), JobRow.id > after
    )
    return (await session.scalars(query.order_by(JobRow.id).limit(limit))).all()
