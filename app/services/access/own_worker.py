"""A worker speaks for itself alone."""

from app.domain.errors import ForbiddenError
from app.domain.principal import Principal


def check_own(principal: Principal, worker_id: str) -> None:
    """Refuses a worker that speaks for another one.

    Raises:
        ForbiddenError: `other_worker`.
    """
    if principal.worker_id != worker_id:
        raise ForbiddenError(
            "other_worker",
            "This secret belongs to another worker. Every worker speaks for itself alone.",
        )
