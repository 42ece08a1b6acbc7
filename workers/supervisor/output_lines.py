"""Lines of an output that is meant for a terminal.

A progress bar overwrites its line, and several bars move the cursor up. So the last rows of the
output are kept as a terminal shows them, until they are scrolled out.
"""

import codecs
import re
from collections.abc import Iterator
from typing import Final

from palestra.contract.telemetry import MAX_LOG_LINE, MAX_OPEN_LINE, MAX_OPEN_LINES
from workers.ipc.bounded_text import BoundedText, shorten

_CONTROL: Final = re.compile(
    r"[\n\r\b]"
    r"|\x1b\[([0-9;?]{0,32})[ -/]?([@-~])"
    r"|\x1b\][^\x07\x1b\n\r]{0,512}(?:\x07|\x1b\\)"
)
"""Line controls, control sequences (parameters, final character) and operating system commands."""
_INCOMPLETE: Final = re.compile(r"\x1b(?:\[[0-9;?]{0,32})?\Z")
_MAX_INCOMPLETE: Final = 40
_MAX_SCROLLED: Final = 2 * MAX_OPEN_LINES
"""Rows without a cursor-up sequence after which only the last one stays open."""
_MAX_COLOR: Final = 256
"""Characters of sequences that are kept until the text that they precede."""


class _Row:
    """A row of the terminal."""

    def __init__(self, *, is_recorded: bool = False) -> None:
        self.text = BoundedText(MAX_LOG_LINE)
        self.is_recorded = is_recorded
        """Whether its line was returned before, and nothing was written to it since."""

    def append(self, text: str) -> None:
        self.text.append(text)
        self.is_recorded = False

    def clear(self) -> None:
        self.text.clear()


class OutputLines:
    r"""Divides an output into lines, each with the text that a terminal shows at its end.

    - After a carriage return the next text replaces the line. After backspaces it replaces as many
      characters.
    - The rows that cursor-up sequences reach, at most `MAX_OPEN_LINES`, stay open: their lines
      are returned when the output scrolls them out, or goes on for long without moving up. A line
      that was returned before the cursor moved up to it is returned again with its new text.
    - Of a line longer than `MAX_LOG_LINE` characters head and tail are kept, with a note of the
      bytes between.
    - Invalid UTF-8 and NUL become U+FFFD. Colors and operating system commands are kept; of
      the other control sequences those that move the cursor or erase take effect, and none is kept.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._incomplete = ""
        """Begin of a control sequence at the end of the data."""
        self._rows = [_Row()]
        self._cursor = 0
        """Index of the row in which the next text is written."""
        self._height = 1
        """Number of rows that stay open."""
        self._scrolled = 0
        """Number of rows since the cursor moved up."""
        self._is_at_start = True
        """Whether the cursor is in the first column, so that the next text replaces the row."""
        self._backspaces = 0
        self._colors = ""
        """Sequences since the cursor is in the first column."""

    def feed(self, data: bytes, *, is_last: bool = False) -> list[str]:
        """Appends `data` and returns the lines that it completes.

        Bytes of a character or a control sequence that the end of `data` divides wait for the
        rest, unless `is_last`.
        """
        text = self._incomplete + self._decoder.decode(data, final=is_last)
        text = text.replace("\0", "\ufffd")
        divided = None if is_last else _INCOMPLETE.search(text, len(text) - _MAX_INCOMPLETE)
        end = len(text) if divided is None else divided.start()
        self._incomplete = text[end:]
        return list(self._read(text[:end]))

    def finish(self) -> list[str]:
        """Returns the remaining lines, without blank ones at the end."""
        lines = self.feed(b"", is_last=True)
        lines += _strip_blank([str(row.text) for row in self._rows if not row.is_recorded])
        self._rows, self._cursor = [_Row()], 0
        return lines

    def list_open(self) -> tuple[str, ...]:
        """Returns the present text of the lines that are not complete.

        Each has at most `MAX_OPEN_LINE` characters. Blank lines at the end are left out.
        """
        texts = [str(row.text) for row in self._rows if not row.is_recorded]
        return tuple(shorten(text, MAX_OPEN_LINE) for text in _strip_blank(texts))

    def _read(self, text: str) -> Iterator[str]:
        position = 0
        for control in _CONTROL.finditer(text):
            self._write(text[position : control.start()])
            position = control.end()
            if control[0] == "\n":
                yield from self._end_row()
            elif control[0] == "\r":
                self._move_to_start()
            elif control[0] == "\b":
                self._backspaces += 1
            elif control[2] is None or control[2] == "m":
                self._keep(control[0])
            else:
                self._execute(control[1], control[2])
        self._write(text[position:])

    def _write(self, text: str) -> None:
        if not text:
            return
        row = self._rows[self._cursor]
        if self._is_at_start:
            row.clear()
            row.append(self._colors)
            self._is_at_start, self._colors = False, ""
        elif self._backspaces:
            row.text.remove_last(self._backspaces)
        self._backspaces = 0
        row.append(text)

    def _keep(self, sequence: str) -> None:
        """Keeps a sequence that neither shows text nor moves the cursor."""
        if not self._is_at_start:
            self._rows[self._cursor].append(sequence)
        elif len(self._colors) + len(sequence) <= _MAX_COLOR:
            self._colors += sequence

    def _end_row(self) -> Iterator[str]:
        self._move_to_start()
        self._cursor += 1
        if self._cursor == len(self._rows):
            self._rows.append(_Row())
            self._scrolled += 1
        if self._scrolled > _MAX_SCROLLED:
            self._height = 1
        while len(self._rows) > self._height:
            row = self._rows.pop(0)
            self._cursor -= 1
            if not row.is_recorded:
                yield str(row.text)

    def _move_to_start(self) -> None:
        self._is_at_start, self._backspaces, self._colors = True, 0, ""

    def _execute(self, parameters: str, final: str) -> None:
        """Executes a control sequence that moves the cursor or erases; others have no effect."""
        count = max(1, int(parameters)) if parameters.isdecimal() else 1
        match final:
            case "A" | "F":
                self._move_up(min(count, MAX_OPEN_LINES))
            case "B" | "E":
                self._cursor = min(self._cursor + count, len(self._rows) - 1)
            case "D":
                self._backspaces += count
            case "G" if count == 1:
                self._move_to_start()
            case "J" | "K":
                self._erase(parameters, with_rows_below=final == "J")
        if final in "EF":
            self._move_to_start()

    def _move_up(self, count: int) -> None:
        self._cursor -= count
        while self._cursor < 0 and len(self._rows) < MAX_OPEN_LINES:
            self._rows.insert(0, _Row(is_recorded=True))
            self._cursor += 1
        self._cursor = max(0, self._cursor)
        self._height = max(self._height, len(self._rows))
        self._scrolled = 0

    def _erase(self, parameters: str, *, with_rows_below: bool) -> None:
        row = self._rows[self._cursor]
        if parameters in {"", "0"}:
            if self._is_at_start:
                row.clear()
            elif self._backspaces:
                row.text.remove_last(self._backspaces)
                self._backspaces = 0
            if with_rows_below:
                del self._rows[self._cursor + 1 :]
        elif parameters == "2" and not with_rows_below:
            row.clear()


def _strip_blank(texts: list[str]) -> list[str]:
    while texts and not texts[-1].strip():
        texts.pop()
    return texts
