"""Checks that a worker's secret is used for that worker only."""

from app.db.engine import Session
from app.db.repositories import workers as rows
from app.domain.errors import ForbiddenError
from app.domain.principal import Principal


async def confirm_own(session: Session, principal: Principal, worker_id: str) -> None:
    """Refuses the secret of another worker.

    The first use of the new secret of a rotation ends the former one.

    Raises:
        ForbiddenError: `other_worker`.
    """
    if principal.worker_id != worker_id:
        raise ForbiddenError(
            "other_worker",
            "This secret belongs to another worker. Use the secret of the worker that you name.",
        )
    if principal.uses_next_secret:
        await rows.take_next_secret(session, worker_id)
