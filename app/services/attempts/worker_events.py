"""Events of workers, which change with their attempts."""

from app.db.engine import Session
from app.db.models.workers import WorkerRow
from app.services.events import event_log
from app.services.views.workers import EVERYBODY, build_worker_views


async def append_worker_event(session: Session, worker: WorkerRow) -> None:
    """Appends the event of a changed worker; all who see its pool receive it.

    The event holds only data that all of these users may see: whether each slot is busy.
    """
    (view,) = await build_worker_views(session, [worker], EVERYBODY)
    event_log.record(session, "worker", view, project_id=None)
