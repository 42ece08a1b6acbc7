"""The event log: all changes in the order of their commits.

`record` is called in the transaction of the change; clients read the log through `app.api.stream`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from app.db.engine import Session
from app.db.repositories import events as rows
from palestra.contract.event_streams import EventType


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
    """Appends an event when the session's transaction commits; a rollback discards it.

    Args:
        session: A writing session.
        kind: Type of the event, for example `run` or `attempt`.
        data: View of the changed resource.
        project_id: Project whose members see the event; `None` for an event of a pool or a worker,
            which all who see the pool receive.
        experiment_id: Experiment of the resource, for the filters of the stream.
        run_id: Run of the resource.
        job_id: Job of the resource.
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


async def read_cursor(session: Session) -> int:
    """Returns the ID of the newest event that is visible in the session's transaction."""
    return await rows.read_newest_id(session)
