"""Errors that services raise for requests that they refuse.

The API turns each into problem details; `code` is stable, `detail` is a sentence a user can act on.
"""

from typing import Any, Final

STORAGE_RETRY_SECONDS: Final = 10
"""Seconds after which to retry a request that was refused because a disk is full."""

_OF_NO_PROJECT: Final = frozenset(
    {
        "user",
        "invitation",
        "login",
        "enrolment token",
        "deleted project",
        "project of this pool",
        "window of this pool",
    }
)

_NO_PROJECT: Final = (
    "There is no such project, or you are no member of it, or your token is limited to another "
    "one. `palestra projects list` names yours."
)
_SENTENCES: Final = {
    "project": _NO_PROJECT,
    "pool": (
        "There is no such pool, or it admits none of your projects. `palestra pools list` names "
        "those that you may use."
    ),
    "worker": "There is no such worker in a pool that you may use.",
}


class DomainError(Exception):
    """Base class of the errors with which a service refuses a request.

    Args:
        code: Stable error code for programs.
        detail: A sentence a user can act on. Must not contain values of the request.
        pointer: JSON pointer to the member of the request that caused the error, if any.
        extra: Further members of the problem details, for example `expected_seq`.
    """

    def __init__(self, code: str, detail: str, *, pointer: str | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.pointer = pointer
        self.extra = extra


class NotFoundError(DomainError):
    """The resource does not exist, or belongs to another project: 404."""

    def __init__(self, what: str = "resource") -> None:
        where = "" if what in _OF_NO_PROJECT else " in this project"
        detail = f"There is no such {what}{where}."
        super().__init__("not_found", _SENTENCES.get(what, detail))


class ConflictError(DomainError):
    """The state of the resource does not permit the request: 409."""


class InvalidError(DomainError):
    """The request is well-formed but its content is invalid: 422."""


class ForbiddenError(DomainError):
    """The caller lacks the permission for the request: 403."""


class UnauthenticatedError(DomainError):
    """The credential is missing, wrong, expired or revoked: 401."""


class LoginRefusedError(UnauthenticatedError):
    """A wrong name, password or login link: 401.

    Args:
        code: Stable error code for programs.
        detail: A sentence a user can act on.
        user_id: User whose login was tried, for the audit log only: an answer that showed
            whether a name exists would help to find names.
    """

    def __init__(self, code: str, detail: str, user_id: str | None = None) -> None:
        super().__init__(code, detail)
        self.user_id = user_id


class TooLargeError(DomainError):
    """The request exceeds a size limit: 413."""


class TooManyRequestsError(DomainError):
    """The caller exceeds a rate or count limit: 429. `extra` may hold `retry_after` in seconds."""


class StorageFullError(DomainError):
    """A disk of the server, or Palestra's quota of it, is full: 507.

    The same request may succeed once space has been freed.
    """

    def __init__(self, detail: str) -> None:
        super().__init__("storage_full", detail, retry_after=STORAGE_RETRY_SECONDS)


class UnavailableError(DomainError):
    """The server cannot serve the request now: 503. `extra` may hold `retry_after` in seconds."""
