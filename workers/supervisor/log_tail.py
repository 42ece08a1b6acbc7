"""Follows the trainer's output and turns it into records of log lines."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from palestra.contract.telemetry import LogLines
from workers.supervisor.output_lines import OutputLines

MAX_LOG_BYTES: Final = 2**30
"""Bytes of an attempt's lines that are recorded; the log file keeps the rest."""

_READ_BYTES: Final = 256 * 1024
_MAX_LINES: Final = 1_000
OPEN_SECONDS: Final = 1.0
"""Least number of seconds between two records of open lines without a complete one."""


class LogTail:
    """Reads the lines that were appended to a file since the last poll.

    See `OutputLines` for what a line is. A line without an end, such as a progress bar, is
    recorded as an open line once a second, and once more as a complete line at the end.

    Args:
        path: The file; it may not exist yet.
        run: The run that the records name.
        clock: Seconds since the epoch.
    """

    def __init__(self, path: Path, run: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._run = run
        self._clock = clock
        self._output = OutputLines()
        self._offset = 0
        self._recorded_bytes = 0
        self._open: tuple[str, ...] = ()
        """The open lines that were recorded last."""
        self._open_at = 0.0
        self.is_exhausted = False
        """True once the lines took more than is recorded."""
        self.last_line = ""
        """Text of the last line that was not blank."""

    def poll(self) -> Iterator[LogLines]:
        """Yields the new lines, from at most one block of the file."""
        lines = self._output.feed(self._read())
        open_lines = self._output.list_open()
        is_due = open_lines != self._open and self._clock() - self._open_at >= OPEN_SECONDS
        if lines or is_due:
            yield from self._records(lines, open_lines)

    def finish(self) -> Iterator[LogLines]:
        """Yields all remaining lines, including unfinished ones."""
        while data := self._read():
            lines = self._output.feed(data)
            if lines:
                yield from self._records(lines, ())
        lines = self._output.finish()
        if lines or self._open:
            yield from self._records(lines, ())

    def _read(self) -> bytes:
        if self._recorded_bytes >= MAX_LOG_BYTES:
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

    def _records(self, lines: Sequence[str], open_lines: tuple[str, ...]) -> Iterator[LogLines]:
        """Yields records of complete lines; the last one has the open lines."""
        self._recorded_bytes += sum(len(line.encode()) + 1 for line in lines)
        self.last_line = next((line for line in reversed(lines) if line.strip()), self.last_line)
        self._open, self._open_at = open_lines, self._clock()
        for start in range(0, max(1, len(lines)), _MAX_LINES):
            end = start + _MAX_LINES
            yield LogLines(
                run=self._run,
                stream="stdout",
                wall=self._clock(),
                lines=tuple(lines[start:end]),
                open_lines=open_lines if end >= len(lines) else (),
            )
