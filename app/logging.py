"""Structured logs on standard error, from which secrets are removed before they are written.

Defines the form of every log line, including those of libraries.
"""

import asyncio
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from palestra.addresses import mask_password

_SECRET_KEYS: Final = re.compile(
    r"password|secret|token|authorization|cookie|csrf|broker_url|database_url", re.IGNORECASE
)
_PATTERNS: Final = (
    (re.compile(r"\b(pl[aerslw])_[0-9A-Za-z]{8,}"), r"\1_***"),
    (re.compile(r"(?i)\b(password=)[^&\s\"']+"), r"\1***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',]+"), r"\1 ***"),
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def configure_logging(level: str = "info", form: str = "json") -> None:
    """Sends the log lines of structlog and of the standard library to standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        scrub,
    ]
    renderer = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    handler.addFilter(_is_worth_logging)
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in (
        "uvicorn",
        "uvicorn.error",
        "uvicorn.access",
        "celery",
        "kombu",
        "sqlalchemy",
        "asyncio",
        "alembic",
    ):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Returns false for the error that a cancelled reset of a database connection logs.

    A second Ctrl-C cancels tasks in the middle of a transaction. The connection pool then closes
    the connection, with which the database ends the transaction, and logs the cancellation as an
    error.
    """
    cause = record.exc_info[1] if record.exc_info else None
    return not (
        record.name.startswith("sqlalchemy.pool") and isinstance(cause, asyncio.CancelledError)
    )


def scrub(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that replaces secrets by `***` and escapes control characters."""
    for key, value in event.items():
        event[key] = "***" if _SECRET_KEYS.search(key) and value else _scrub_value(value)
    return event


def scrub_text(text: str) -> str:
    """Returns `text` without credentials and control characters."""
    text = mask_password(text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def _scrub_value(value: Any) -> Any:
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {
            key: "***" if _SECRET_KEYS.search(str(key)) else _scrub_value(member)
            for key, member in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_scrub_value(member) for member in value]
    return value
