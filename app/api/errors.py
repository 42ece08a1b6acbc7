"""Problem details (RFC 9457): every answer that is not a success has this one shape.

Defines the messages and codes of faults that the HTTP layer itself detects. They must never repeat
values of the request.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from app.api.deps import get_database
from app.api.head_requests import list_methods
from app.db import faults
from app.domain.errors import (
    ConflictError,
    DomainError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    StorageFullError,
    TooLargeError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)
from palestra.contract.problems import build_pointer, explain
from palestra.contract.views import FieldProblem, Problem
from palestra.contract.wording import describe_fault

_log = structlog.get_logger("palestra.api")

_RETRY_SECONDS: Final = 1
"""Seconds after which a client asks again when the database was busy."""

MEDIA_TYPE: Final = "application/problem+json"

_SENTENCES: Final[Mapping[int, tuple[str, str]]] = {
    400: ("bad_request", "The request could not be read. Check its form."),
    401: ("unauthenticated", "Log in, or send a token: `Authorization: Bearer plr_...`."),
    403: ("forbidden", "This login may not do that."),
    404: ("not_found", "There is no such resource in this project."),
    405: ("method_not_allowed", "Use one of the methods in the Allow header."),
    413: ("too_large", "The body is larger than this route takes. Send it in smaller parts."),
    415: (
        "unsupported_media_type",
        "Send the body as `Content-Type: application/json`, not compressed.",
    ),
    421: (
        "misdirected",
        "This server does not answer for that host name. Add it to `allowed_hosts`.",
    ),
    500: (
        "internal_error",
        "The server failed. Nothing was changed; the server's log has the request_id.",
    ),
    503: ("unavailable", "The server cannot serve this now. Try again in a moment."),
    507: (
        "storage_full",
        "A disk of the server is full. Free some space on it; the same request succeeds then.",
    ),
}


class HttpProblemError(Exception):
    """Raised to answer a request with a status and problem details."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.extra = extra


def build_unauthenticated(detail: str = _SENTENCES[401][1]) -> HttpProblemError:
    """Returns the answer to a request without a valid credential."""
    return HttpProblemError(
        401, "unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="palestra"'}
    )


def build_forbidden(code: str, detail: str) -> HttpProblemError:
    """Returns the answer to a request that its credential does not permit."""
    return HttpProblemError(403, code, detail)


def build_method_refusal(methods: Collection[str]) -> HttpProblemError:
    """Returns the answer to a request with a method that its path does not have."""
    code, detail = _SENTENCES[405]
    return HttpProblemError(405, code, detail, headers={"Allow": ", ".join(sorted(methods))})


def build_not_found(what: str = "resource") -> HttpProblemError:
    """Returns the same 404 for a missing resource and for a resource of another project."""
    return HttpProblemError(404, "not_found", f"There is no such {what} in this project.")


def build_invalid(where: str, code: str, message: str, status: int = 422) -> HttpProblemError:
    """Returns the answer for an invalid member of the body or parameter.

    `where` is a JSON pointer, or the name of a parameter.
    """
    problem = FieldProblem(pointer=where, code=code, message=message)
    return HttpProblemError(status, code, _detail((problem,)), errors=(problem,))


def build_invalid_document(error: ValidationError, model: type[BaseModel]) -> HttpProblemError:
    """Returns the refusal of a body that is JSON but not a `model`."""
    problems = explain(error, model)
    return HttpProblemError(422, "invalid_document", _detail(problems), errors=problems)


def convert_domain_error(error: DomainError) -> HttpProblemError:
    """Returns the answer for a refusal of a service."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 409)
    extra = dict(error.extra)
    headers = {"Retry-After": str(extra.pop("retry_after"))} if "retry_after" in extra else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="palestra"'
    problems = (
        ()
        if error.pointer is None
        else (FieldProblem(pointer=error.pointer, code=error.code, message=error.detail),)
    )
    detail = _detail(problems) if problems and error.detail[:1].islower() else error.detail
    return HttpProblemError(status, error.code, detail, errors=problems, headers=headers, **extra)


def build_problem_response(request: Request, error: HttpProblemError) -> Response:
    """Returns the answer for `error`."""
    body = Problem(
        type=f"urn:palestra:problem:{error.code}",
        title=_title(error.status),
        status=error.status,
        code=error.code,
        detail=error.detail,
        instance=None,
        request_id=get_request_id(request),
        errors=list(error.errors),
        **error.extra,
    )
    content = body.model_dump_json(exclude_none=True)
    return Response(
        content, error.status, {**error.headers, "Cache-Control": "no-store"}, MEDIA_TYPE
    )


def get_request_id(request: Request) -> str:
    """Returns the id that the outermost middleware gave the request."""
    return str(request.scope.get("state", {}).get("request_id", ""))


def install(app: FastAPI) -> None:
    """Registers a handler for every kind of exception that a request can raise."""
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)


async def _on_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpProblemError)
    return build_problem_response(request, error)


async def _on_domain_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, DomainError)
    return build_problem_response(request, convert_domain_error(error))


async def _on_database_error(request: Request, error: Exception) -> Response:
    """Answers 503 for a fault that may pass; others are faults of the server."""
    if faults.exceeded_deadline(error):
        seconds = get_database(request).statement_seconds
        problem = HttpProblemError(
            503,
            "statement_deadline",
            f"The database gave up this request after {seconds:g} s, its limit. Ask for less: "
            "fewer terms in the filter, fewer runs or groups, or a smaller page.",
        )
        return build_problem_response(request, problem)
    if not faults.is_temporary(error):
        raise error
    _log.warning("database.unavailable", error=type(error).__name__, path=request.url.path)
    problem = HttpProblemError(
        503,
        "database_busy",
        "The database is busy or cannot be reached. Try again in a moment.",
        headers={"Retry-After": str(_RETRY_SECONDS)},
    )
    return build_problem_response(request, problem)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, detail = _SENTENCES.get(error.status_code, ("error", _title(error.status_code) + "."))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return build_problem_response(request, build_method_refusal(_list_methods(request)))
    return build_problem_response(
        request, HttpProblemError(error.status_code, code, detail, headers=error.headers)
    )


def _list_methods(request: Request) -> frozenset[str]:
    """Returns the methods of all routes at a path; a refusal of FastAPI names those of one."""
    path = request.scope["path"]
    return frozenset[str]().union(
        *(
            methods
            for begin, pattern, methods in _list_paths(request.app)
            if path.startswith(begin) and pattern.match(path)
        )
    )


@lru_cache(8)
def _list_paths(app: FastAPI) -> list[tuple[str, re.Pattern[str], frozenset[str]]]:
    """Returns begin, pattern and methods of the path of each route."""
    return [
        (str(context.path).partition("{")[0], context.path_regex, list_methods(context))
        for context in iter_route_contexts(app.routes)
    ]


async def _on_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = tuple(_parameter_problem(details) for details in error.errors())
    return build_problem_response(
        request, HttpProblemError(422, "invalid_parameter", _detail(problems), errors=problems)
    )


def _parameter_problem(details: Mapping[str, Any]) -> FieldProblem:
    where, *path = details["loc"]
    return FieldProblem(
        pointer=f"{where}{build_pointer(path)}",
        code="invalid_parameter",
        message=describe_fault(details),
    )


def _detail(problems: Sequence[FieldProblem]) -> str:
    if not problems:
        return "The request is not valid."
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{first.pointer or 'The body'}: {first.message.rstrip('.')}{more}."


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


_STATUS: Final[Mapping[type[DomainError], int]] = {
    NotFoundError: 404,
    ConflictError: 409,
    InvalidError: 422,
    ForbiddenError: 403,
    UnauthenticatedError: 401,
    TooLargeError: 413,
    TooManyRequestsError: 429,
    UnavailableError: 503,
    StorageFullError: 507,
}

_Handler = Callable[[Request, Exception], Awaitable[Response]]

_HANDLERS: Final[Mapping[type[Exception], _Handler]] = {
    HttpProblemError: _on_api_error,
    DomainError: _on_domain_error,
    HTTPException: _on_http_exception,
    RequestValidationError: _on_parameters,
    faults.DatabaseError: _on_database_error,
}
