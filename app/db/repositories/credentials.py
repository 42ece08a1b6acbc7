"""Credentials by the hashes of their secrets, those that have ended included, for the audit log."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, null, select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.access import LoginSessionRow, TokenRow
from app.db.models.jobs import AttemptRow
from app.db.models.pools import EnrolmentTokenRow
from app.db.models.workers import WorkerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A credential as the audit log names it."""

    id: str
    actor: str
    """`user:ID` of a login; `token:ID`, `enrolment:ID`, `worker:ID` or
    `attempt:ID`."""
    project_id: str | None
    user_id: str | None
    """The person; `None` for workers and attempts."""


async def load_by_hash(session: Session, hashes: Collection[str]) -> Mapping[str, Credential]:
    """Returns the credentials with the given hashes, valid or not."""
    found: dict[str, Credential] = {}
    if not hashes:
        return found
    for kind, query in _build_queries(hashes):
        for digest, row_id, project_id, user_id in await session.execute(query):
            actor = f"user:{user_id}" if kind == "login" else f"{kind}:{row_id}"
            found[digest] = Credential(
                id=row_id,
                actor=actor,
                project_id=project_id,
                user_id=user_id if kind in {"login", "token"} else None,
            )
    return found


def _build_queries(hashes: Collection[str]) -> Iterator[tuple[str, Select[Any, Any, Any, Any]]]:
    """Yields queries of (hash, id, project, user) with the kind of credential that they find."""
    # The secret before a rotation is included, since a program may still use it.
    for secret in (TokenRow.secret_hash, TokenRow.previous_hash):
        found = func.coalesce(secret, "")
        token = select(found, TokenRow.id, TokenRow.project_id, TokenRow.user_id)
        yield "token", token.where(is_any_of(secret, hashes))
    login = select(LoginSessionRow.secret_hash, LoginSessionRow.id, null(), LoginSessionRow.user_id)
    yield "login", login.where(is_any_of(LoginSessionRow.secret_hash, hashes))
    worker = select(func.coalesce(WorkerRow.secret_hash, ""), WorkerRow.id, null(), null())
    yield "worker", worker.where(is_any_of(WorkerRow.secret_hash, hashes))
    enrolment = select(EnrolmentTokenRow.secret_hash, EnrolmentTokenRow.id, null(), null())
    yield "enrolment", enrolment.where(is_any_of(EnrolmentTokenRow.secret_hash, hashes))
    attempt = select(
        AttemptRow.token_hash, AttemptRow.id, AttemptRow.project_id, AttemptRow.worker_id
    )
    yield "attempt", attempt.where(is_any_of(AttemptRow.token_hash, hashes))
