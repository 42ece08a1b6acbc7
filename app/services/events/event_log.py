"""The event log: what changed, in the order in which it became visible.

`record` is called in the transaction of the change; readers tail the log with `app.api.stream`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel

from app.db.engine import Session
from app.db.repositories import events as rows

EventType = Literal[
    "experiment",
    "run",
    "job",
    "attempt",
    "worker",
    "snapshot",
    "evaluation",
    "points",
    "log",
    "stats",
]


def record(  # noqa: PLR0913 - three positional ones; the rest names what the event is about
    session: Session,
    kind: EventType,
    data: BaseModel | Mapping[str, Any],
    *,
    project_id: str | None,
    experiment_id: str | None = None,
    run_id: str | None = None,
    job_id: str | None = None,
) -> None:
    """Appends an event when the session's transaction commits; drops it with the transaction.

    Args:
        session: A writing session.
        kind: What changed.
        data: The changed resource's view.
        project_id: Who sees it; `None` for all projects.
        experiment_id: Experiment that it belongs to, for the filters of the stream.
        run_id: Run that it belongs to.
        job_id: Job that it belongs to.
    """
    content = data.model_dump(mode="json") if isinstance(data, BaseModel) else dict(data)
    row = {
        "project_id": project_id,
        "type": kind,
        "experiment_id": experiment_id,
        "run_id": run_id,
        "job_id": job_id,
        "data": content,
    }
    rows.append(session, row)


async def cursor(session: Session) -> int:
    """Returns the id of the newest event that the session's snapshot contains."""
    return await rows.newest(session)
