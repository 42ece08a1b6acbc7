"""Prints the log of a run."""

import sys
from typing import Self

from rich.live import Live
from rich.text import Text

from palestra.cli.output import emit_json_line, out, remove_control_characters
from palestra.contract.queries import LogView, OpenLogLine


class LogPrinter:
    """Prints complete lines; on a terminal the open lines are below them and are replaced.

    Elsewhere open lines are not printed before they are complete. Starts no thread.

    Args:
        as_json: Print each line as a line of JSON instead.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._open_lines: tuple[OpenLogLine, ...] = ()
        self._live: Live | None = None
        if not as_json and out.is_terminal and sys.stdout.isatty():
            self._live = Live(console=out, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            for line in self._open_lines:
                out.out(remove_control_characters(line.text), highlight=False)

    def print(self, log: LogView) -> None:
        """Prints the lines of a page of the log."""
        for line in log.lines:
            if self._as_json:
                emit_json_line(line)
            else:
                out.out(remove_control_characters(line.text), highlight=False)
        self._open_lines = log.open_lines
        if self._live is not None:
            text = "\n".join(remove_control_characters(line.text) for line in log.open_lines)
            self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
