"""Logging of the worker's processes: one JSON object per line on standard error.

Event names are constant and dotted; credentials are never logged.
"""

import contextlib
import io
import sys
from typing import Final, TextIO, cast

import structlog

Logger = structlog.typing.FilteringBoundLogger

LEFT_OUT: Final = "left out: "
"""Prefix of lines in which the catalogue's subprocess reports a part that it cannot offer."""


class _LogStream(io.TextIOBase):
    """Writes lines to a stream; a line that cannot be written is lost.

    A process whose log is on a full disk would otherwise end at its first message.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


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
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _LogStream(sys.stderr))),
        cache_logger_on_first_use=True,
    )


def get_logger(**context: str) -> Logger:
    """Returns a logger whose lines carry `context`."""
    logger: Logger = structlog.get_logger(**context)
    return logger
