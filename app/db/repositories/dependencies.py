"""Dependencies of jobs on the end of other jobs."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import bindparam, insert, literal_column, select, update
from sqlalchemy.sql.elements import ColumnElement

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.jobs import JobDependencyRow, JobRow
from palestra.contract.job_options import DependencyCondition

SUCCESS: Final[DependencyCondition] = "success"


def has_none_open() -> ColumnElement[bool]:
    """The condition that a job waits for the end of no other job.

    The number is a literal: a partial index serves no statement whose number is a parameter.
    """
    return JobRow.open_dependencies == literal_column("0")


async def lock_predecessors(
    session: Session, project_id: str, job_ids: Collection[str]
) -> Sequence[JobRow]:
    """Returns jobs of a project, locked: none of them ends before the transaction does."""
    query = (
        select(JobRow)
        .where(JobRow.project_id == project_id, JobRow.id.in_(job_ids))
        .order_by(JobRow.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query)).all()


async def add(
    session: Session, pairs: Iterable[tuple[str, str]], condition: DependencyCondition
) -> None:
    """Makes the first job of each pair wait for the second one.

    `open_dependencies` is written by the caller.
    """
    rows = [
        {"job_id": job_id, "after_id": after_id, "condition": condition, "is_open": True}
        for job_id, after_id in pairs
    ]
    if rows:
        await session.execute(insert(JobDependencyRow), rows)


async def close(session: Session, after_id: str) -> dict[str, str]:
    """Closes the dependencies on a job that has ended; returns the condition of each job."""
    return dict((await session.execute(_close(), {"after": after_id})).all())


@cache
def _close() -> Any:
    return (
        update(JobDependencyRow)
        .where(JobDependencyRow.after_id == bindparam("after"), JobDependencyRow.is_open)
        .values(is_open=False)
        .returning(JobDependencyRow.job_id, JobDependencyRow.condition)
        .execution_options(synchronize_session=False)
    )


async def count_down(session: Session, job_ids: Collection[str]) -> Sequence[JobRow]:
    """Lowers the number of open dependencies of some jobs by one; returns those jobs."""
    if not job_ids:
        return []
    statement = (
        update(JobRow)
        .where(is_any_of(JobRow.id, job_ids))
        .values(open_dependencies=JobRow.open_dependencies - 1)
        .execution_options(synchronize_session=False)
    )
    await session.execute(statement)
    query = select(JobRow).where(is_any_of(JobRow.id, job_ids)).order_by(JobRow.id)
    return (await session.scalars(query.execution_options(populate_existing=True))).all()


async def list_for_jobs(
    session: Session, job_ids: Collection[str]
) -> dict[str, list[JobDependencyRow]]:
    """Returns the dependencies of some jobs that have any, by job ID."""
    if not job_ids:
        return {}
    found: dict[str, list[JobDependencyRow]] = {}
    query = (
        select(JobDependencyRow)
        .where(is_any_of(JobDependencyRow.job_id, job_ids))
        .order_by(JobDependencyRow.job_id, JobDependencyRow.after_id)
        .execution_options(populate_existing=True)
    )
    for row in await session.scalars(query):
        found.setdefault(row.job_id, []).append(row)
    return found
