"""Follows the trainer's output and turns it into records of log lines."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from palestra.contract.telemetry import MAX_LOG_LINE, LogLines

MAX_LOG_BYTES: Final = 2**30
"""Bytes of an attempt's output that are recorded; the log file keeps the rest."""

_READ_BYTES: Final = 256 * 1024
_MAX_LINES: Final = 1_000
_MAX_LINE_BYTES: Final = 4 * MAX_LOG_LINE
"""Bytes kept of a line: enough for the longest one in UTF-8."""
_IDLE_SECONDS: Final = 1.0
"""Age in seconds from which an unfinished line is recorded."""


class OutputLine(NamedTuple):
    """A line of output as the run's log shows it."""

    text: str
    dropped: int
    """Characters (beyond what is kept, bytes) that were cut off."""


class LineSplitter:
    """Splits a stream of bytes into lines and truncates lines over the maximum length."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._overflow = 0

    def feed(self, data: bytes) -> Iterator[OutputLine]:
        """Appends `data` and yields the lines that it completes."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._extend(part)
            yield self._finish()
        self._extend(rest)

    def flush(self) -> Iterator[OutputLine]:
        """Yields the unfinished line, if there is one."""
        if self._line or self._overflow:
            yield self._finish()

    def _extend(self, part: bytes) -> None:
        room = _MAX_LINE_BYTES - len(self._line)
        self._line += part[:room]
        self._overflow += max(0, len(part) - room)

    def _finish(self) -> OutputLine:
        text, cut = _decode_line(bytes(self._line))
        line = OutputLine(text, cut + self._overflow)
        self._line.clear()
        self._overflow = 0
        return line


class LogTail:
    """Reads the lines that were appended to a file since the last poll.

    Terminal escape sequences are kept; invalid UTF-8 and NUL become U+FFFD. Of a line that was
    overwritten with carriage returns, the last text is kept. A line longer than the contract allows
    is truncated, and the number of dropped bytes is recorded.

    Args:
        path: The file; it may not exist yet.
        run: The run that the records name.
        clock: Seconds since the epoch.
    """

    def __init__(self, path: Path, run: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._run = run
        self._clock = clock
        self._splitter = LineSplitter()
        self._offset = 0
        self._read_at = 0.0
        self.is_exhausted = False
        """True once the file grew beyond what is followed."""
        self.last_line = ""
        """Text of the last line that was not blank."""

    def poll(self) -> Iterator[LogLines]:
        """Yields the new lines, from at most one block of the file."""
        data = self._read()
        if data:
            self._read_at = self._clock()
            yield from self._records(list(self._splitter.feed(data)))
        elif self._clock() - self._read_at >= _IDLE_SECONDS:
            yield from self._records(list(self._splitter.flush()))

    def finish(self) -> Iterator[LogLines]:
        """Yields all remaining lines, including an unfinished one."""
        while data := self._read():
            yield from self._records(list(self._splitter.feed(data)))
        yield from self._records(list(self._splitter.flush()))

    def _read(self) -> bytes:
        if self._offset >= MAX_LOG_BYTES:
            self.is_exhausted = True
            return b""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(data)
        return data

    def _records(self, lines: list[OutputLine]) -> Iterator[LogLines]:
        for start in range(0, len(lines), _MAX_LINES):
            some = lines[start : start + _MAX_LINES]
            texts = tuple(line.text for line in some)
            self.last_line = next(
                (text for text in reversed(texts) if text.strip()), self.last_line
            )
            yield LogLines(
                run=self._run,
                stream="stdout",
                wall=self._clock(),
                lines=texts,
                truncated=sum(line.dropped for line in some),
            )


def _decode_line(line: bytes) -> tuple[str, int]:
    text = line.decode("utf-8", "replace").rstrip("\r")
    text = text[text.rfind("\r") + 1 :].replace("\0", "\ufffd")
    return text[:MAX_LOG_LINE], max(0, len(text) - MAX_LOG_LINE)
