"""Notes refused requests for the audit log.

Refusals with 401 and 403 are noted where a credential or a tried login tells whose they are. A 404
is not noted: it answers requests for objects of another project as well as for missing objects, and
a query that distinguishes the two would change the time of the answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response

from app.api.auth import SESSION_COOKIE
from app.api.cookies import read_cookie
from app.api.errors import HttpProblemError, convert_domain_error
from app.api.origin import get_client_address, read_origin
from app.db.repositories.credentials import Credential
from app.domain.errors import DomainError, LoginRefusedError
from app.domain.principal import Principal
from app.domain.secrets import hash_secret, is_well_formed
from app.services.access.audit_actor import describe_actor
from app.services.audit.refusals import Refusal, Refusals

_REFUSED = frozenset({401, 403})
_Handler = Callable[[Request, Any], Response | Awaitable[Response]]


def install(app: FastAPI) -> None:
    """Makes the registered handlers of errors count the requests that they refuse."""
    for kind in (HttpProblemError, DomainError):
        app.add_exception_handler(kind, _noting(app.exception_handlers[kind]))


def _noting(handler: _Handler) -> _Handler:
    async def note_and_answer(request: Request, error: Exception) -> Response:
        refusal = _refusal(request, error)
        if refusal is not None:
            refusals: Refusals = request.app.state.refusals
            refusals.note(refusal)
        answer = handler(request, error)
        return answer if isinstance(answer, Response) else await answer

    return note_and_answer


def _refusal(request: Request, error: Exception) -> Refusal | None:
    answered = convert_domain_error(error) if isinstance(error, DomainError) else error
    route = request.scope.get("route")
    if not isinstance(answered, HttpProblemError) or answered.status not in _REFUSED or not route:
        return None
    principal: Principal | None = getattr(request.state, "principal", None)
    whose: dict[str, Any]
    if isinstance(error, LoginRefusedError):
        tried = error.user_id
        whose = {"action": "login.refuse", "object_id": tried or "unknown", "user_id": tried}
    elif principal is not None:
        whose = {"caller": _caller(request, principal)}
    elif (secret := _read_secret(request)) is not None:
        whose = {"secret_hash": hash_secret(secret)}
    else:
        return None
    return Refusal(
        route=f"{request.method} {route.path}",
        code=answered.code,
        address=get_client_address(request) or None,
        **whose,
    )


def _caller(request: Request, principal: Principal) -> Credential | None:
    origin = read_origin(request)
    return Credential(
        id=origin.credential or "",
        actor=describe_actor(principal),
        project_id=next(iter(principal.project_ids)) if len(principal.project_ids) == 1 else None,
        user_id=origin.user_id,
    )


def _read_secret(request: Request) -> str | None:
    """Returns the secret of a request whose credential was not accepted, if it is well-formed."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    secret = token.strip() if scheme.lower() == "bearer" else read_cookie(request, SESSION_COOKIE)
    return secret if secret and is_well_formed(secret) else None
