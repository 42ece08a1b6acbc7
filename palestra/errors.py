"""Exceptions of the client: one class per kind of refusal, with the server's problem details."""

from collections.abc import Mapping
from typing import Final

from palestra.contract.views import Problem


class PalestraError(Exception):
    """Base class of the errors of `palestra.Client`.

    Its text is a sentence that a user can act on.
    """


class UnreachableError(PalestraError):
    """The server did not answer."""


class UnexpectedAnswerError(PalestraError):
    """The answer is not one of Palestra's API.

    Another program may listen at the address, or a much newer server.
    """


class TokenNotMadeError(PalestraError):
    """A login succeeded, for example by an invitation, and the token was not made.

    `Client.log_in` and `palestra login URL --user NAME` make one.

    Args:
        user: Login name of the user who logged in.
        reason: Why there is no token: a sentence.
    """

    def __init__(self, user: str, reason: str) -> None:
        super().__init__(reason)
        self.user = user


class EventsLostError(PalestraError):
    """The server's log no longer holds the events after a cursor, or the client read too slowly.

    Read the present state, then follow the events from the cursor that it reaches.

    Args:
        cursor: The cursor; `None` if none was reached.
    """

    def __init__(self, cursor: int | None) -> None:
        after = "these" if cursor is None else f"the events after {cursor}"
        super().__init__(
            f"The server cannot send {after} any more: read the present state, and follow the "
            "events from then on"
        )
        self.cursor = cursor


class ApiError(PalestraError):
    """The server refused the request."""

    def __init__(self, problem: Problem) -> None:
        faults = "".join(
            f"\n  {fault.pointer or '(document)'}: {fault.message}" for fault in problem.errors
        )
        super().__init__(problem.detail if len(problem.errors) < 2 else problem.detail + faults)
        self.problem = problem

    @property
    def code(self) -> str:
        """The stable code, by which programs distinguish problems."""
        return self.problem.code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class InvalidRequestError(ApiError):
    """The request has a fault; `problem.errors` points at it (400, 413, 415, 422)."""


class UnauthenticatedError(ApiError):
    """No token, or one that is unknown, expired or revoked (401)."""


class ForbiddenError(ApiError):
    """The token may not do this (403)."""


class NotFoundError(ApiError):
    """There is no such resource in the token's project (404)."""


class ConflictError(ApiError):
    """The resource's state forbids the request, or another request changed it (409, 412)."""


class TooManyRequestsError(ApiError):
    """The caller exceeds a rate or count limit of the server (429)."""


class ServerError(ApiError):
    """The server failed or cannot serve now (5xx)."""


class LibraryMissingError(PalestraError):
    """A method needs a library that is not installed."""


_KINDS: Final[Mapping[int, type[ApiError]]] = {
    400: InvalidRequestError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    413: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: TooManyRequestsError,
}


def build_error(problem: Problem) -> ApiError:
    """Returns the exception for problem details."""
    kind = _KINDS.get(problem.status, ServerError if problem.status >= 500 else ApiError)
    return kind(problem)
