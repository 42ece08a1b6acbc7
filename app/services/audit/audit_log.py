"""The audit log: `record` appends an entry in the transaction of the change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.db.engine import Session
from app.db.repositories import audit as rows

_ORIGIN: Final = "palestra_audit_origin"
_SECRETS_OF: Final = frozenset({"token", "enrolment", "attempt", "worker"})
"""Kinds of actors that are credentials themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """The address and client of a request, stored with the audit entries of its transaction."""

    address: str | None = None
    user_agent: str | None = None
    """The request's `User-Agent`, which no entry contains."""
    user_id: str | None = None
    """The person behind the credential; `None` for workers and attempts."""
    credential: str | None = None
    """ID of the login, token, worker or attempt."""


def set_origin(session: Session, origin: RequestOrigin) -> None:
    """Sets the origin of all entries that `record` appends to the session."""
    session.info[_ORIGIN] = origin


def record(
    session: Session,
    action: str,
    object_id: str,
    *,
    project_id: str | None,
    actor: str,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Appends an entry when the session's transaction commits; a rollback discards it.

    Args:
        session: A writing session. The entry names its origin (`set_origin`).
        action: Type of the object and what was done, for example `token.revoke`.
        object_id: The object.
        project_id: Project of the object; `None` for what concerns the whole server.
        actor: `user:ID`, `token:ID`, `enrolment:ID`, `attempt:ID`, `worker:ID` or
            `daemon:NAME`.
        data: What changed.
    """
    origin: RequestOrigin = session.info.get(_ORIGIN, RequestOrigin())
    kind, _, actor_id = actor.partition(":")
    row = {
        "project_id": project_id,
        "actor": actor,
        "user_id": origin.user_id or (actor_id if kind == "user" else None),
        "credential": origin.credential or (actor_id if kind in _SECRETS_OF else None),
        "address": origin.address,
        "action": action,
        "object_type": action.partition(".")[0],
        "object_id": object_id,
        "data": dict(data or {}),
    }
    rows.append(session, row)
