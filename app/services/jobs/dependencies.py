"""Jobs that wait for the end of others: checked at submission, resolved when those end.

A dependency names a job that exists, and is never changed: dependencies form no cycle, since the ID
of a job is made after those of all jobs that it waits for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories import dependencies as rows
from app.domain.errors import ConflictError, InvalidError
from palestra.contract.job_options import DependencyCondition
from palestra.contract.problems import build_pointer
from palestra.contract.states import FINAL_JOB_STATES, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What new jobs wait for."""

    after: tuple[str, ...] = ()
    """IDs of jobs that have not ended."""
    condition: DependencyCondition = rows.SUCCESS

    @property
    def columns(self) -> dict[str, int]:
        """The columns of a job that waits for them."""
        return {"open_dependencies": len(self.after)}


async def check(
    session: Session,
    project_id: str,
    after: Sequence[str],
    condition: DependencyCondition,
    pointer: str,
) -> Dependencies:
    """Returns the dependencies of new jobs without those that are met; none ends meanwhile.

    Args:
        session: A writing session.
        project_id: Project of the new jobs.
        after: IDs of the jobs to wait for.
        condition: Whether they have to succeed.
        pointer: JSON pointer of the options in the request.

    Raises:
        InvalidError: `unknown_dependency` for a job that the project does not have.
        ConflictError: `dependency_failed` for a job that has failed or was cancelled, if it has to
            succeed.
    """
    if not after:
        return Dependencies()
    found = {job.id: job for job in await rows.lock_predecessors(session, project_id, after)}
    for index, job_id in enumerate(after):
        where = build_pointer(("after", index))
        if job_id not in found:
            raise InvalidError(
                "unknown_dependency",
                "This project has no such job. A job waits for jobs of its own project: `palestra "
                "jobs` lists them.",
                pointer=f"{pointer}{where}",
            )
        _check_state(found[job_id], condition, f"{pointer}{where}")
    still_open = [job_id for job_id in after if found[job_id].state not in FINAL_JOB_STATES]
    return Dependencies(after=tuple(dict.fromkeys(still_open)), condition=condition)


def _check_state(job: JobRow, condition: DependencyCondition, pointer: str) -> None:
    if condition == "success" and job.state in {JobState.FAILED, JobState.CANCELLED}:
        how = "failed" if job.state == JobState.FAILED else "was cancelled"
        raise ConflictError(
            "dependency_failed",
            f"The job {job.id} {how}, so this one would never start. Retry its run and name the "
            "new job, or leave it out, or set `on` to any.",
            pointer=pointer,
        )


async def store(session: Session, jobs: Sequence[JobRow], dependencies: Dependencies) -> None:
    """Makes new jobs wait; they were inserted with `Dependencies.columns`."""
    pairs = product([job.id for job in jobs], dependencies.after)
    await rows.add(session, pairs, dependencies.condition)


async def store_each(session: Session, after: Mapping[str, str]) -> None:
    """Makes each new job wait for the success of one other job.

    Args:
        session: A writing session.
        after: ID of the other job, by the ID of the new one.
    """
    await rows.add(session, after.items(), rows.SUCCESS)
