"""Adoption: a worker resumes an attempt whose supervisor died while it uploaded results.

The results are stored only on that worker, so the attempt continues with the upload instead of
being marked as lost.
"""

from app.db.engine import Session
from app.db.repositories import attempts as rows
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import hash_secret
from app.services.access.own_worker import confirm_own
from app.services.attempts import claims
from app.settings import Settings
from palestra.contract.states import LIVE_ATTEMPT_STATES
from palestra.contract.work_order import Adoption, AdoptionAnswer


async def adopt(
    session: Session, principal: Principal, attempt_id: str, body: Adoption, settings: Settings
) -> AdoptionAnswer:
    """Starts a new lease of a live attempt and returns it with the attempt's token.

    Raises:
        ForbiddenError: `other_worker` if the secret belongs to another worker.
        NotFoundError: If the worker has no such attempt.
        ConflictError: `stale_attempt` if it has ended or was marked as lost.
    """
    await confirm_own(session, principal, body.worker_id)
    attempt = await rows.find(session, attempt_id, lock=True)
    if attempt is None or attempt.worker_id != body.worker_id:
        raise NotFoundError("attempt of this worker")
    if attempt.state not in LIVE_ATTEMPT_STATES:
        raise ConflictError(
            "stale_attempt",
            (
                "The attempt has ended or was given up. Its files on the worker are not "
                "wanted any more."
            ),
        )
    token = claims.derive_attempt_token(principal, attempt.id)
    await rows.renew(session, attempt, {"token_hash": hash_secret(token)}, settings.lease_seconds)
    return AdoptionAnswer(
        token=token,
        slot=attempt.slot,
        further_slots=tuple(attempt.further_slots or ()),
        renew_seconds=settings.renew_seconds,
    )
