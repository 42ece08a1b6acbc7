"""Events of changed runs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.services.events import event_log
from app.services.views.columns import RUN_COLUMNS, columns_of

_NO_CHANGES: Final[Mapping[str, Any]] = {}


def append_run_event(
    session: Session, run: RunRow, changes: Mapping[str, Any] = _NO_CHANGES
) -> None:
    """Appends the event of a changed run.

    Args:
        session: A writing session.
        run: The run.
        changes: Further members of the run's view, as JSON.
    """
    data = {
        **columns_of(run, *RUN_COLUMNS),
        "started_at": format_time(run.started_at),
        "finished_at": format_time(run.finished_at),
        **changes,
    }
    event_log.record(
        session,
        "run",
        data,
        project_id=run.project_id,
        experiment_id=run.experiment_id,
        run_id=run.id,
        job_id=run.job_id,
    )


def format_time(moment: datetime | None) -> str | None:
    """Returns a time as the API writes it."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
