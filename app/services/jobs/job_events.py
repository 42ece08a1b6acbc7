"""Events of changed jobs, and of the experiments whose state follows from them.

An event holds what a change of a job may have altered, from rows in hand: no event costs a query.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.services.events import event_log
from app.services.runs.run_events import format_time
from app.services.views.columns import columns_of

_NO_CHANGES: Final[Mapping[str, Any]] = {}
_JOB_COLUMNS: Final = (
    "id",
    "experiment_id",
    "schedule",
    "state",
    "cause",
    "failure",
    "pool",
    "priority_class",
    "priority",
    "resources",
    "limits",
)


def append_job_event(
    session: Session,
    job: JobRow,
    run_ids: Sequence[str],
    changes: Mapping[str, Any] = _NO_CHANGES,
) -> None:
    """Appends the event of a changed job.

    Args:
        session: A writing session.
        job: The job.
        run_ids: IDs of its runs in their order.
        changes: Further members of the job's view, as JSON.
    """
    data = {
        **columns_of(job, *_JOB_COLUMNS),
        "attempts": job.attempt,
        "run_ids": list(run_ids),
        "started_at": format_time(job.started_at),
        "finished_at": format_time(job.finished_at),
        **changes,
    }
    event_log.record(
        session,
        "job",
        data,
        project_id=job.project_id,
        experiment_id=job.experiment_id,
        run_id=run_ids[0] if len(run_ids) == 1 else None,
        job_id=job.id,
    )


def append_runs_changed(session: Session, job: JobRow) -> None:
    """Appends the event of an experiment of which a job's runs have changed.

    It names the experiment alone: its state and its numbers of runs follow from its runs.
    """
    event_log.record(
        session,
        "experiment",
        {"id": job.experiment_id},
        project_id=job.project_id,
        experiment_id=job.experiment_id,
    )
