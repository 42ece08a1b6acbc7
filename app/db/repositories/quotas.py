"""Quotas of projects and persons in a pool, and the numbers of jobs that limits count."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select, tuple_

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import JobRow
from app.db.models.pools import PoolRow, QuotaRow
from app.db.repositories import job_queue
from app.db.upsert import insert_or_update
from app.domain.queue.quotas import PoolQuotas, Quota
from app.domain.queue.start_order import ExperimentKey, UsageAccount

PROJECT: Final = ""
"""Subject of the quota of a project with all its persons."""

EACH_PERSON: Final = "*"
"""Subject of the quota of each person who has no quota of their own."""


async def load(session: Session, pool: str) -> PoolQuotas:
    """Returns the quotas of a pool."""
    return _build((await session.execute(_select(), {"pool": pool})).all())


@cache
def _select() -> Any:
    return (
        select(
            QuotaRow.project_id,
            QuotaRow.subject,
            QuotaRow.queued,
            QuotaRow.running,
            QuotaRow.device_hours,
        )
        .join(PoolRow, PoolRow.id == QuotaRow.pool_id)
        .where(PoolRow.name == bindparam("pool"))
    )


async def lock(session: Session, pool: str, project_id: str) -> PoolQuotas:
    """Returns the quotas of a project in a pool, locked until the transaction ends."""
    query = _select().where(QuotaRow.project_id == project_id).order_by(QuotaRow.subject)
    return _build((await session.execute(query.with_for_update(of=QuotaRow), {"pool": pool})).all())


def _build(rows: Any) -> PoolQuotas:
    projects: dict[str, Quota] = {}
    each_person: dict[str, Quota] = {}
    persons: dict[UsageAccount, Quota] = {}
    for project_id, subject, queued, running, device_hours in rows:
        quota = Quota(queued=queued, running=running, device_hours=device_hours)
        if subject == PROJECT:
            projects[project_id] = quota
        elif subject == EACH_PERSON:
            each_person[project_id] = quota
        else:
            persons[UsageAccount(project_id, subject)] = quota
    return PoolQuotas(projects=projects, each_person=each_person, persons=persons)


async def store(
    session: Session, pool_id: str, project_id: str, subject: str, quota: Quota | None
) -> None:
    """Sets or removes a quota."""
    key = {"pool_id": pool_id, "project_id": project_id, "subject": subject}
    if quota is None:
        await session.execute(
            delete(QuotaRow).where(*(getattr(QuotaRow, name) == key[name] for name in key))
        )
        return
    values = {name: getattr(quota, name) for name in ("queued", "running", "device_hours")}
    await session.execute(insert_or_update(session, QuotaRow, [{**key, **values}], values))


async def count_queued(session: Session, pool: str, project_id: str) -> dict[str, int]:
    """Returns how many jobs of each person of a project are queued in a pool, by user ID."""
    query = (
        select(JobRow.created_by, func.count())
        .where(JobRow.pool == pool, JobRow.project_id == project_id, job_queue.is_queued())
        .group_by(JobRow.created_by)
    )
    return dict((await session.execute(query)).all())


async def count_running(session: Session, pool: str) -> dict[UsageAccount, int]:
    """Returns how many jobs of each account are assigned or live in a pool."""
    query = (
        select(JobRow.project_id, JobRow.created_by, func.count())
        .where(JobRow.pool == pool, job_queue.holds_devices(), JobRow.charged_weight.is_not(None))
        .group_by(JobRow.project_id, JobRow.created_by)
    )
    return {UsageAccount(*row[:2]): row[2] for row in await session.execute(query)}


async def load_experiment_limits(
    session: Session, keys: Collection[ExperimentKey]
) -> dict[ExperimentKey, int]:
    """Returns the limits on running jobs of experiments, without experiments that have no limit."""
    if not keys:
        return {}
    rows = (await session.execute(_select_limits(), {"keys": [tuple(key) for key in keys]})).all()
    return {ExperimentKey(*row[:2]): row[2] for row in rows}


@cache
def _select_limits() -> Any:
    key = tuple_(ExperimentRow.project_id, ExperimentRow.id)
    return select(ExperimentRow.project_id, ExperimentRow.id, ExperimentRow.max_running).where(
        key.in_(bindparam("keys", expanding=True)), ExperimentRow.max_running.is_not(None)
    )


async def count_running_of_experiments(
    session: Session, keys: Collection[ExperimentKey]
) -> Mapping[ExperimentKey, int]:
    """Returns how many jobs of each experiment are assigned or live, in all pools."""
    key = (JobRow.project_id, JobRow.experiment_id)
    query = (
        select(*key, func.count())
        .where(
            tuple_(*key).in_(bindparam("keys", expanding=True)),
            job_queue.holds_devices(),
            JobRow.charged_weight.is_not(None),
        )
        .group_by(*key)
    )
    rows = (await session.execute(query, {"keys": [tuple(key) for key in keys]})).all()
    return {ExperimentKey(*row[:2]): row[2] for row in rows}
