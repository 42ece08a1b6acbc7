"""The outermost layer: request ids, the Host allow-list, security headers and internal errors.

Requests of the API without any credential are refused here, before a route is looked for: they are
free to send, and anybody may.

There are no CORS headers anywhere: other origins may not read answers.
"""

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final

import structlog
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import (
    HttpProblemError,
    build_method_refusal,
    build_not_found,
    build_problem_response,
    build_unauthenticated,
)
from app.domain.request_ids import new_request_id

_log = structlog.get_logger("palestra.api")

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_ID_HEADER: Final = b"x-request-id"
_CREDENTIALS: Final = frozenset({b"authorization", b"cookie"})
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_MAX_HOST_BYTES: Final = 300
"""Bytes of a `Host` header that are read: more than a host name with its port has."""
_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src "
    "'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""Permits scripts from this server's files alone.

Styles may be inline, since the component library writes its colour variables inline.
"""

_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
}
_Header = tuple[bytes, bytes]


class Guard:
    """ASGI middleware around every request.

    Args:
        app: Serves the requests.
        host_names: Names by which the server is reached.
        public: Methods and paths of the API that need no credential.
        tls: Whether browsers reach the server by TLS.
    """

    def __init__(
        self,
        app: ASGIApp,
        host_names: frozenset[str],
        public: frozenset[tuple[str, str]],
        *,
        tls: bool = False,
    ) -> None:
        self._app = app
        self._public = public | {("HEAD", path) for method, path in public if method == "GET"}
        # The hosts of requests are few; a caller that sends many only displaces them.
        self._is_own_host = lru_cache(256)(partial(_is_own_host, host_names))
        headers = {**_HEADERS, "Strict-Transport-Security": "max-age=31536000"} if tls else _HEADERS
        self._headers = _encode(headers)
        self._api_headers = _encode({**headers, "Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request; refuses web sockets."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._add_headers(scope, message, request_id)
            await send(message)

        refusal = self._check_host(scope) or _check_nul(scope) or self._check_credential(scope)
        if refusal is not None:
            answer = build_problem_response(Request(scope), refusal)
            if scope["method"] == "HEAD":
                answer.body = b""
            await answer(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except ClientDisconnect:
            _log.info(
                "request.cut", request_id=request_id, method=scope["method"], path=scope["path"]
            )
        # The last place where an answer can still be given.
        except Exception as error:  # noqa: BLE001
            _log.error(
                "request.crashed",
                request_id=request_id,
                method=scope["method"],
                path=scope["path"],
                exc_info=error,
            )
            if not started:
                await build_problem_response(Request(scope), _crash())(scope, receive, guarded)

    def _check_host(self, scope: Scope) -> HttpProblemError | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        is_own = self._is_own_host(hosts[0][:_MAX_HOST_BYTES]) if len(hosts) == 1 else None
        if is_own is None:
            return HttpProblemError(400, "invalid_host", "Send exactly one valid Host header.")
        if not is_own:
            return HttpProblemError(
                421,
                "misdirected",
                (
                    "This server does not answer for that host name. Add it to the setting "
                    "allowed_hosts."
                ),
            )
        return None

    def _check_credential(self, scope: Scope) -> HttpProblemError | None:
        method, path = scope["method"], scope["path"]
        if not path.startswith("/api/v1/") or (method, path) in self._public:
            return None
        if any(name in _CREDENTIALS for name, _ in scope["headers"]):
            return None
        if method not in _METHODS:
            return build_method_refusal(_METHODS)
        return build_unauthenticated()

    def _add_headers(self, scope: Scope, message: Message, request_id: str) -> None:
        sent = message["headers"]
        names = {name for name, _ in sent}
        ours = self._api_headers if scope["path"].startswith("/api/") else self._headers
        message["headers"] = [
            *(header for header in sent if header[0] != _ID_HEADER),
            *(header for header in ours if header[0] not in names),
            (_ID_HEADER, request_id.encode("latin-1")),
        ]


def _is_own_host(host_names: frozenset[str], host: bytes) -> bool | None:
    """Returns whether a `Host` header names this server; `None` if it is not valid."""
    match = _HOST.fullmatch(host.decode("latin-1").lower())
    return None if match is None else match["name"] in host_names


def _encode(headers: Mapping[str, str]) -> tuple[_Header, ...]:
    """Returns headers as ASGI has them: lower-case names, all as bytes."""
    return tuple((name.lower().encode(), value.encode()) for name, value in headers.items())


def _check_nul(scope: Scope) -> HttpProblemError | None:
    """Refuses a path or query with the NUL character, which PostgreSQL cannot store in text."""
    if "\0" in scope["path"]:
        return build_not_found()
    if b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        return HttpProblemError(
            422, "nul_character", "The query must not contain the NUL character."
        )
    return None


def _request_id(scope: Mapping[str, Any]) -> str:
    sent = next((value for name, value in scope["headers"] if name == _ID_HEADER), b"")
    return sent.decode() if _REQUEST_ID.fullmatch(sent) else new_request_id()


def _crash() -> HttpProblemError:
    return HttpProblemError(
        500, "internal_error", "The server failed. Nothing was changed; its log has the request_id."
    )
