"""Steps of tests of the queue: explain a job, run it, move it to another project."""

from dataclasses import replace
from typing import Any

from app.db.models import (
    ExperimentRow,
    JobRow,
)
from app.db.repositories import queue_groups
from app.domain.principal import Principal
from app.services.jobs import explanation
from palestra.contract.permissions import Role
from palestra.contract.queue import JobExplanation
from palestra.contract.states import Cause, Outcome
from tests.support.server_fixture import World, advance_clock


async def explain(world: World, job_id: str, by: Any = None) -> JobExplanation:
    async with world.database.read() as session:
        return await explanation.explain(session, by or world.admin, job_id)


async def run_for(world: World, job_id: str, worker: str, seconds: float, slot: int = 0) -> None:
    attempt = (await world.start(job_id, worker, slot=slot)).work_order.attempt_id
    advance_clock(seconds)
    await world.release(attempt, Outcome.SUCCEEDED, Cause.BUDGET)


def as_member(world: World) -> Principal:
    return replace(
        world.other,
        memberships=tuple(replace(one, role=Role.MEMBER) for one in world.other.memberships),
    )


async def move_to_project(session: Any, job: JobRow, project_id: str) -> None:
    """Copies the experiment of a job to another project and re-points the job."""
    key = (project_id, job.experiment_id)
    own = await session.get(ExperimentRow, (job.project_id, job.experiment_id))
    if await session.get(ExperimentRow, key) is None:
        columns = {
            column.key: getattr(own, column.key) for column in ExperimentRow.__mapper__.column_attrs
        }
        session.add(ExperimentRow(**{**columns, "project_id": project_id}))
        await session.flush()
    job.project_id = project_id
    await session.flush()
    await queue_groups.join_group(session, [job])
