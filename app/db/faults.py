"""Classifies failures of the database: full disk, content that cannot be stored, or temporary."""

import errno
import sqlite3
from typing import Final

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.domain.errors import StorageFullError

DatabaseError = SQLAlchemyError
"""Base class of the errors of the database layer."""

_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_STATE: Final = "53100"
"""SQLSTATE `disk_full` of PostgreSQL."""
_MISSING_ROW_STATE: Final = "23503"
"""SQLSTATE `foreign_key_violation` of PostgreSQL."""
_CANCELLED_STATE: Final = "57014"
"""SQLSTATE `query_canceled` of PostgreSQL."""
_TEMPORARY_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_CANTOPEN,
    }
)
_TEMPORARY_CLASSES: Final = frozenset({"08", "40", "53", "55", "57", "58"})
"""Classes of SQLSTATE: connection, transaction rollback, insufficient resources, object not in the
needed state, operator intervention, system error."""
_CONTENT_CLASSES: Final = frozenset({"22", "23", "54"})
"""Classes of SQLSTATE: data exception, integrity constraint violation, program limit exceeded."""
_CONTENT_FAULTS: Final = (
    StatementError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Exceptions for content that the code or the driver cannot encode, whenever it is tried."""


def is_full(error: BaseException) -> bool:
    """Returns whether a statement, commit or file operation failed due to a full disk or quota."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return (
            _sqlite_code(cause) == sqlite3.SQLITE_FULL
            or getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE
        )
    if isinstance(cause, OSError):
        return cause.errno in _FULL_ERRNOS
    return _state(cause) == _FULL_STATE


def refers_to_missing_row(error: BaseException) -> bool:
    """Returns whether a row refers to a row that does not exist, such as a deleted user."""
    cause = error.orig if isinstance(error, IntegrityError) else None
    return (
        _state(cause) == _MISSING_ROW_STATE
        or getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    )


def depends_on_content(error: BaseException) -> bool:
    """Returns whether an error is due to the content of a statement, so that no retry succeeds.

    Returns false for a temporary fault: a lost connection, a lock, a time limit, a full disk or a
    failure of the server's machine.
    """
    if is_full(error):
        return False
    if isinstance(error, IntegrityError | DataError):
        return True
    if isinstance(error, DBAPIError):
        return _exceeds_a_limit(error.orig)
    return isinstance(error, _CONTENT_FAULTS)


def is_temporary(error: BaseException) -> bool:
    """Returns whether the same statement may succeed in a moment.

    The database is locked, overloaded, shutting down or cannot be reached, its connections are all
    in use, or a transaction was ended to let another one go on.
    """
    if isinstance(error, PoolTimeoutError | DisconnectionError):
        return True
    if not isinstance(error, DBAPIError) or is_full(error):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_code(error.orig) in _TEMPORARY_CODES
    state = _state(error.orig)
    return state[:2] in _TEMPORARY_CLASSES if state else isinstance(error, OperationalError)


def exceeded_deadline(error: BaseException) -> bool:
    """Returns whether a statement was ended since it took longer than its deadline."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return _sqlite_code(cause) == sqlite3.SQLITE_INTERRUPT
    return _state(cause) == _CANCELLED_STATE


def is_of_database(error: BaseException) -> bool:
    """Returns whether the database failed, so that statements about other rows would fail, too."""
    return isinstance(error, SQLAlchemyError | StorageFullError) and not depends_on_content(error)


def _exceeds_a_limit(cause: BaseException | None) -> bool:
    if isinstance(cause, sqlite3.Error):
        code = _sqlite_code(cause)
        return code == sqlite3.SQLITE_TOOBIG or (
            code == sqlite3.SQLITE_ERROR and not str(cause).startswith("no such")
        )
    return _state(cause)[:2] in _CONTENT_CLASSES


def _sqlite_code(cause: sqlite3.Error) -> int:
    return int(getattr(cause, "sqlite_errorcode", 0)) & 0xFF


def _state(cause: BaseException | None) -> str:
    return str(getattr(cause, "sqlstate", None) or "")
