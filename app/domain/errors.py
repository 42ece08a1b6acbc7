"""Refusals that services raise.

The API turns each into problem details; `code` is stable, `detail` is a sentence a user can act on.
"""

from typing import Any, Final

STORAGE_RETRY_SECONDS: Final = 10
"""When to ask again after a refusal for want of room."""


class DomainError(Exception):
    """Base of all refusals.

    Args:
        code: Stable code, programs decide by it.
        detail: A sentence a user can act on. Must not repeat what was sent.
        pointer: JSON pointer to the member of the request that is at fault, if one is.
        extra: Further members of the answer, for example `expected_seq`.
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
        super().__init__("not_found", f"There is no such {what} in this project.")


class ConflictError(DomainError):
    """The state does not permit the change: 409."""


class InvalidError(DomainError):
    """The request is well-formed but cannot be meant: 422."""


class ForbiddenError(DomainError):
    """The caller may not do that: 403."""


class UnauthenticatedError(DomainError):
    """The credential is missing, wrong, expired or revoked: 401."""


class TooLargeError(DomainError):
    """More than a limit permits: 413."""


class TooManyRequestsError(DomainError):
    """Too often: 429. `extra` may hold `retry_after` in seconds."""


class StorageFullError(DomainError):
    """A disk of the server, or the part of it that may be used, is full: 507.

    The same may succeed once there is room.
    """

    def __init__(self, detail: str) -> None:
        super().__init__("storage_full", detail, retry_after=STORAGE_RETRY_SECONDS)


class UnavailableError(DomainError):
    """The server cannot do that now: 503. `extra` may hold `retry_after` in seconds."""
