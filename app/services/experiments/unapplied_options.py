"""Options of a submission that had no effect, because its runs existed with other options."""

from collections.abc import Sequence
from typing import Any

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.models.jobs import JobRow
from app.db.repositories import jobs as job_rows
from palestra.contract.job_options import JobOptions
from palestra.contract.views import SubmissionWarning

_MEMBERS = ("schedule", "pool", "priority", "resources", "limits")


async def list_warnings(
    session: Session, runs: Sequence[RunRow], options: JobOptions
) -> list[SubmissionWarning]:
    """Returns a warning for each option that differs from that of an existing run.

    Args:
        session: A session.
        runs: Runs of the submitted seeds for which the submission queues no job.
        options: The submitted options.
    """
    seeds: dict[str, list[int]] = {}
    for run in runs:
        if run.job_id is not None:
            seeds.setdefault(run.job_id, []).append(run.seed)
    found: dict[tuple[str, ...], tuple[Any, Any, list[int]]] = {}
    for job in await job_rows.list_by_ids(session, seeds):
        for where, has, wanted in _list_differences(job, options.model_dump(mode="json")):
            found.setdefault(where, (has, wanted, []))[2].extend(seeds[job.id])
    return [_warning(where, *difference) for where, difference in found.items()]


def _list_differences(
    job: JobRow, wanted: dict[str, Any]
) -> list[tuple[tuple[str, ...], Any, Any]]:
    """Returns how a job's options differ from the requested ones: path, present, requested."""
    pairs: list[tuple[tuple[str, ...], Any, Any]] = []
    for member in _MEMBERS:
        has = getattr(job, member)
        if isinstance(has, dict):
            pairs += [
                ((member, name), has.get(name, value), value)
                for name, value in wanted[member].items()
            ]
        else:
            pairs.append(((member,), has, wanted[member]))
    return [pair for pair in pairs if pair[1] != pair[2]]


def _warning(where: tuple[str, ...], has: Any, wanted: Any, seeds: list[int]) -> SubmissionWarning:
    first = (
        f"seed {min(seeds)}" if len(seeds) == 1 else f"{len(seeds)} seeds, {min(seeds)} the first,"
    )
    return SubmissionWarning(
        code="options_not_applied",
        pointer="/".join(("/options", *where)),
        message=f"{'.'.join(where)} {wanted} was not applied: the run of {first} is there "
        f"already, with {has}. "
        "Options are those of the first submission; cancel the run and retry it, or "
        "submit other seeds",
    )
