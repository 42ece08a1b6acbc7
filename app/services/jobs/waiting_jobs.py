"""Changes of waiting jobs: class, priority, limits, and their order among the person's own jobs."""

from collections.abc import Mapping
from typing import Any, Final

from app.db.engine import QUEUE, Session, announce
from app.db.models.jobs import JobRow
from app.db.repositories import own_order as rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import queue_groups
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services import pools
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.jobs import job_state, jobs, priority_classes
from app.services.views.jobs import build_job_views
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_changes import JobChange, LimitsChange
from palestra.contract.job_options import Limits
from palestra.contract.names import PriorityClass
from palestra.contract.permissions import Permission
from palestra.contract.resources import JobView
from palestra.contract.states import FINAL_JOB_STATES, JobState

_ORDER_OF_PERSONS: Final = (
    "Each person orders the own jobs. Between persons and projects the order follows their usage: "
    "the lowest for its share starts first."
)


async def change(session: Session, principal: Principal, job_id: str, wanted: JobChange) -> JobView:
    """Changes the class, the priority or limits of a waiting job.

    A job that gets another class or priority loses a place that a user gave it.

    Raises:
        NotFoundError: If none of the caller's projects has a job of that ID.
        ForbiddenError: If the caller may not act on it; `class_not_permitted`.
        ConflictError: `not_waiting` unless it is queued; `already_assigned`.
        InvalidError: `wall_time_too_long` or `interactive_too_long`.
    """
    return await _view(session, await apply_change(session, principal, job_id, wanted))


async def apply_change(
    session: Session, principal: Principal, job_id: str, wanted: JobChange
) -> JobRow:
    """Changes a waiting job like `change`; returns its row."""
    job = await jobs.find_to_control(session, principal, job_id)
    if wanted.model_fields_set:
        await _check_waits(session, job)
    changed = await _list_changes(session, principal, job, wanted)
    if changed:
        await _write(session, job, changed)
        shown = {name: value for name, value in changed.items() if name != "own_place"}
        await _record(session, principal, job, "job.change", shown)
    return job


async def _list_changes(
    session: Session, principal: Principal, job: JobRow, wanted: JobChange
) -> dict[str, Any]:
    """Returns the columns that a change writes, after its checks."""
    limits = Limits.model_validate_json(encode_canonical_json(job.limits))
    if wanted.limits is not None:
        limits = await _change_limits(session, job, limits, wanted.limits)
    priority_class = wanted.priority_class or job.priority_class
    if priority_class != job.priority_class:
        priority_classes.check(principal, job.project_id, priority_class, limits, "")
    else:
        priority_classes.check_wall_time(priority_class, limits, "")
    values: dict[str, Any] = {
        "priority_class": priority_class,
        "priority": job.priority if wanted.priority is None else wanted.priority,
        "limits": limits.model_dump(mode="json"),
    }
    changed = {name: value for name, value in values.items() if value != getattr(job, name)}
    if {"priority_class", "priority"} & set(changed):
        changed["own_place"] = 0
    return changed


async def _change_limits(
    session: Session, job: JobRow, limits: Limits, wanted: LimitsChange
) -> Limits:
    named = {
        name: getattr(wanted, name)
        for name in wanted.model_fields_set
        if name == "wall_seconds" or getattr(wanted, name) is not None
    }
    changed = limits.model_copy(update=named)
    if changed.wall_seconds == limits.wall_seconds:
        return changed
    pool = await pool_rows.find_by_name(session, job.pool)
    return changed if pool is None else pools.apply_default_wall_time(changed, pool, "/limits")


async def reorder(
    session: Session, principal: Principal, job_id: str, before: str | None
) -> JobView:
    """Moves a waiting job directly before another job of the person, or after all of them.

    The job takes the priority of that job. If a maintainer moves it before a job of another person
    or project, it gets the class `urgent`: the order between persons has no other exception.

    Args:
        session: A writing session.
        principal: The caller.
        job_id: The job.
        before: ID of the other job; `None`: after all others in the same pool, project and class.

    Raises:
        NotFoundError: If none of the caller's projects has a job of that ID.
        ForbiddenError: If the caller may not act on it; `other_persons_job`.
        ConflictError: `not_waiting` or `already_assigned` if either job does not wait;
            `order_by_usage` if the class `urgent` would not bring it before the other job;
            `other_class`.
        InvalidError: `unknown_job`, `before_itself` or `other_pool`.
    """
    return await _view(session, await apply_order(session, principal, job_id, before))


async def apply_order(
    session: Session, principal: Principal, job_id: str, before: str | None
) -> JobRow:
    """Moves a waiting job like `reorder`; returns its row."""
    job = await jobs.find(session, principal, job_id)
    jobs.require_control(principal, job)
    if before is None:
        await _move_last(session, principal, job)
        return job
    other = await _find_other(session, principal, job, before)
    if (job.project_id, job.created_by) != (other.project_id, other.created_by):
        await _raise_class(session, principal, job, other)
        return job
    if job.priority_class != other.priority_class:
        raise ConflictError(
            "other_class",
            f"The other job has the class {other.priority_class}, this one {job.priority_class}. "
            "Give this job the same class first: palestra change JOB --class "
            f"{other.priority_class}",
            pointer="/before",
        )
    await queue_groups.lock_group(session, job)
    await rows.lock_before(session, job, other)
    await _check_waits(session, job)
    await _check_waits(session, other, "/before")
    await _write(session, job, await rows.find_place_before(session, job, other))
    await _record(session, principal, job, "job.reorder", {"before": other.id})
    return job


async def _move_last(session: Session, principal: Principal, job: JobRow) -> None:
    await queue_groups.lock_group(session, job)
    job = await jobs.find(session, principal, job.id, lock=True)
    await _check_waits(session, job)
    values = await rows.find_last_place(session, job)
    if values:
        await _write(session, job, values)
        await _record(session, principal, job, "job.reorder", {"before": None})


async def _find_other(session: Session, principal: Principal, job: JobRow, before: str) -> JobRow:
    if before == job.id:
        raise InvalidError(
            "before_itself", "Name another job than the one to move.", pointer="/before"
        )
    try:
        other = await jobs.find(session, principal, before)
    except NotFoundError:
        raise InvalidError(
            "unknown_job",
            "There is no such job in your projects. `palestra jobs` lists them.",
            pointer="/before",
        ) from None
    if other.pool != job.pool:
        raise InvalidError(
            "other_pool",
            f"The other job waits in the pool {other.pool}, this one in {job.pool}: their orders "
            "are independent of each other.",
            pointer="/before",
        )
    return other


async def _raise_class(session: Session, principal: Principal, job: JobRow, other: JobRow) -> None:
    """Gives a job the class `urgent`, so that it starts before a job of another person."""
    if not principal.permits(Permission.RUN_CONTROL_ANY, job.project_id):
        raise ForbiddenError(
            "other_persons_job",
            f"The other job is not of the same person and project. {_ORDER_OF_PERSONS} Ask a "
            "maintainer of your project to give this job the class urgent.",
            pointer="/before",
        )
    job = await jobs.find(session, principal, job.id, lock=True)
    await _check_waits(session, job)
    await _check_waits(session, other, "/before")
    later = list(PriorityClass)[list(PriorityClass).index(PriorityClass.URGENT) + 1 :]
    if job.priority_class not in later or other.priority_class not in later:
        raise ConflictError(
            "order_by_usage",
            f"The other job is not of the same person and project. {_ORDER_OF_PERSONS} The class "
            "urgent is an exception for jobs of the classes "
            f"{' and '.join(later)} alone; pause the other job, or wait until it has started.",
            pointer="/before",
        )
    await _write(session, job, {"priority_class": PriorityClass.URGENT, "own_place": 0})
    await _record(
        session,
        principal,
        job,
        "job.reorder",
        {"before": other.id, "priority_class": PriorityClass.URGENT},
    )


async def _check_waits(session: Session, job: JobRow, pointer: str | None = None) -> None:
    which = "The job" if pointer is None else "The other job"
    if job.state != JobState.QUEUED:
        has_ended = job.state in FINAL_JOB_STATES
        remedy = "It has ended." if has_ended else "Pause it and resume it, and it waits again."
        if job.state == JobState.PAUSED:
            remedy = "Resume it first."
        raise ConflictError(
            "not_waiting",
            f"{which} is {job.state}; only jobs that wait in the queue are changed. {remedy}",
            pointer=pointer,
        )
    if await rows.is_assigned(session, job):
        raise _already_assigned(which, pointer)


def _already_assigned(which: str, pointer: str | None = None) -> ConflictError:
    return ConflictError(
        "already_assigned",
        f"{which} was given to a worker a moment ago and is about to start. If the worker does "
        "not start it within seconds, it waits again and can be changed.",
        pointer=pointer,
    )


async def _write(session: Session, job: JobRow, values: Mapping[str, Any]) -> None:
    if not await rows.change(session, job, values):
        raise _already_assigned("The job")
    await queue_groups.join_group(session, [job])
    announce(session, QUEUE)


async def _record(
    session: Session, principal: Principal, job: JobRow, action: str, data: Mapping[str, Any]
) -> None:
    audit_log.record(
        session,
        action,
        job.id,
        project_id=job.project_id,
        actor=describe_actor(principal),
        data=dict(data),
    )
    await job_state.append_events(session, job)


async def _view(session: Session, job: JobRow) -> JobView:
    (view,) = await build_job_views(session, [job])
    return view
