"""What a claim reads beside runs: the job, its experiment, its project and its pool."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import and_, bindparam, exists, select

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow, ProjectPoolRow
from app.db.models.projects import ProjectRow


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToClaim:
    """A job that a worker claims, with rows that do not change meanwhile."""

    job: JobRow
    experiment: ExperimentRow
    is_project_deleted: bool


async def lock_job(session: Session, job_id: str) -> JobToClaim | None:
    """Returns a job of any project, locked until the transaction ends."""
    found = (await session.execute(_select_job(), {"job_id": job_id})).one_or_none()
    if found is None:
        return None
    job, experiment, deleted_at = found
    return JobToClaim(job=job, experiment=experiment, is_project_deleted=deleted_at is not None)


@cache
def _select_job() -> Any:
    mine = and_(
        ExperimentRow.project_id == JobRow.project_id, ExperimentRow.id == JobRow.experiment_id
    )
    return (
        select(JobRow, ExperimentRow, ProjectRow.deleted_at)
        .join(ExperimentRow, mine)
        .join(ProjectRow, ProjectRow.id == JobRow.project_id)
        .where(JobRow.id == bindparam("job_id"))
        .with_for_update(of=JobRow)
        .execution_options(populate_existing=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolToStartIn:
    """What decides whether a job of a project may start in a pool."""

    is_paused: bool
    is_admitted: bool


async def hold_pool(session: Session, name: str, project_id: str) -> PoolToStartIn | None:
    """Returns the pool of that name, locked so that it is not changed before the commit."""
    values = {"name": name, "project_id": project_id}
    found = (await session.execute(_select_pool(), values)).one_or_none()
    if found is None:
        return None
    paused_at, is_admitted = found
    return PoolToStartIn(is_paused=paused_at is not None, is_admitted=is_admitted)


@cache
def _select_pool() -> Any:
    is_admitted = exists().where(
        ProjectPoolRow.pool_id == PoolRow.id,
        ProjectPoolRow.project_id == bindparam("project_id"),
    )
    return (
        select(PoolRow.paused_at, is_admitted.correlate(PoolRow))
        .where(PoolRow.name == bindparam("name"))
        .with_for_update(read=True, of=PoolRow)
    )
