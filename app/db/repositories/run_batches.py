"""The runs on which one request acts together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select

from app.db.engine import Session
from app.db.models.experiments import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllableRuns:
    """On which runs a caller may act."""

    user_id: str
    all_in: frozenset[str]
    """Projects in which it may act on the runs of everybody."""
    own_in: frozenset[str]
    """Projects in which it may act on its own runs."""

    def condition(self) -> ColumnElement[bool]:
        """The condition that the caller may act on a run."""
        own = and_(RunRow.project_id.in_(self.own_in), RunRow.created_by == self.user_id)
        return or_(RunRow.project_id.in_(self.all_in), own)


class SelectedRun(NamedTuple):
    """A run to act on, and its latest training job."""

    id: str
    job_id: str | None


async def count(
    session: Session, conditions: Sequence[ColumnElement[bool]], mine: ControllableRuns
) -> tuple[int, int]:
    """Returns how many runs fit the conditions, and on how many of them the caller may act."""
    query = select(func.count(), func.count().filter(mine.condition())).select_from(RunRow)
    every, permitted = (await session.execute(query.where(*conditions))).one()
    return int(every), int(permitted)


async def count_same_jobs(
    session: Session, conditions: Sequence[ColumnElement[bool]], mine: ControllableRuns
) -> int:
    """Returns how many runs do not fit and have the same training job as one that does."""
    chosen = select(RunRow.job_id).where(*conditions, mine.condition(), RunRow.job_id.is_not(None))
    together = select(func.count()).select_from(RunRow).where(RunRow.job_id.in_(chosen))
    selected = (
        select(func.count())
        .select_from(RunRow)
        .where(*conditions, mine.condition(), RunRow.job_id.is_not(None))
    )
    return int(await session.scalar(together) or 0) - int(await session.scalar(selected) or 0)


async def list_selected(
    session: Session,
    conditions: Sequence[ColumnElement[bool]],
    mine: ControllableRuns,
    limit: int,
) -> list[SelectedRun]:
    """Returns the first runs that fit and on which the caller may act, by ID."""
    query = select(RunRow.id, RunRow.job_id).where(*conditions, mine.condition())
    query = query.order_by(RunRow.id).limit(limit)
    return [SelectedRun(*row) for row in await session.execute(query)]
