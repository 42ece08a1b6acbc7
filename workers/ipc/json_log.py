"""Logging of the worker's processes: one JSON object per line on standard error.

Event names are constant and dotted; credentials are never logged.
"""

import sys
from typing import Final

import structlog

Logger = structlog.typing.FilteringBoundLogger

LEFT_OUT: Final = "left out: "
"""Prefix of lines in which the catalogue's subprocess reports a part that it cannot offer."""


def configure() -> None:
    """Configures logging for this process."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def get_logger(**context: str) -> Logger:
    """Returns a logger whose lines carry `context`."""
    logger: Logger = structlog.get_logger(**context)
    return logger
