"""The pools of a project: `default`, and those in which a worker has ever registered."""

from typing import Final

from app.db.engine import Session
from app.db.repositories import workers as rows
from app.domain.errors import InvalidError
from palestra.contract.problems import nearest

DEFAULT: Final = "default"


async def check(session: Session, project_id: str, pool: str, pointer: str) -> None:
    """Refuses a pool without registered workers; the workers may be offline.

    Raises:
        InvalidError: With the code `unknown_pool`; names the existing pools.
    """
    known = sorted({DEFAULT, *await rows.registered(session, [project_id])})
    if pool not in known:
        message = (
            f"No worker was ever registered in the pool {pool}{nearest(pool, known) or '.'} "
            f"The pools are: {', '.join(known)}. Name one of them, or start a worker of "
            "the new pool first: "
            f"palestra worker --pool {pool}."
        )
        raise InvalidError("unknown_pool", message, pointer=pointer)
