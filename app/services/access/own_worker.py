"""Checks that a worker's secret is used for that worker only."""

from app.domain.errors import ForbiddenError
from app.domain.principal import Principal


def check_own(principal: Principal, worker_id: str) -> None:
    """Refuses the secret of another worker.

    Raises:
        ForbiddenError: `other_worker`.
    """
    if principal.worker_id != worker_id:
        raise ForbiddenError(
            "other_worker",
            "This secret belongs to another worker. Use the secret of the worker that you name.",
        )
