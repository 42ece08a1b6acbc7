"""Stores the answers of requests by their idempotency key, for repetitions."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from app.db.engine import Session
from app.db.repositories import access as rows
from app.domain.errors import ConflictError
from app.domain.principal import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The stored answer of a request."""

    status: int
    body: bytes
    location: str | None = None


async def run_once(
    session: Session,
    principal: Principal,
    key: str,
    request_hash: str,
    change: Callable[[], Awaitable[Answer]],
) -> tuple[Answer, bool]:
    """Returns the answer of `change` or the stored one, and whether it was stored.

    Raises:
        ConflictError: If the key was used with different content.
    """
    user_id = principal.user_id
    if await rows.claim_key(session, user_id, key, request_hash):
        answer = await change()
        await rows.fill_key(session, user_id, key, asdict(answer))
        return answer, False
    known = await rows.find_idempotency_key(session, user_id, key)
    if known is None or known.request_hash != request_hash:
        raise ConflictError(
            "idempotency_key_reused",
            "This Idempotency-Key was already used with different content. Take a new key.",
        )
    return Answer(status=known.status, body=known.body, location=known.location), True
