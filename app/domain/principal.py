"""The authenticated caller of a request and its permissions. Independent of HTTP and storage."""

from dataclasses import dataclass, field
from typing import Literal

from palestra.contract.names import Scope

Via = Literal["cookie", "token", "worker", "attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller, bound to one project.

    Changes are attributed to `user_id`: the user who logged in or who created the token. An attempt
    token has an `attempt_id` and no scope: it permits only the routes of that attempt. A worker's
    secret has a `worker_id`.
    """

    project_id: str
    project: str
    user_id: str
    user: str
    via: Via
    scopes: frozenset[Scope] = frozenset()
    token_id: str | None = None
    session_id: str | None = None
    attempt_id: str | None = None
    worker_id: str | None = None
    derivation_key: str = field(default="", repr=False)
    """Key from which this caller's secrets are derived (`app.domain.secrets.derive_secret`).

    Empty for a browser login and an attempt.
    """

    def permits(self, scope: Scope) -> bool:
        """Returns whether the caller has `scope`; `admin` includes `read` and `submit`."""
        return bool(self.scopes & _IMPLIED_BY[scope])


_IMPLIED_BY = {
    Scope.READ: frozenset({Scope.READ, Scope.ADMIN}),
    Scope.SUBMIT: frozenset({Scope.SUBMIT, Scope.ADMIN}),
    Scope.ADMIN: frozenset({Scope.ADMIN}),
    Scope.WORKER: frozenset({Scope.WORKER}),
}
