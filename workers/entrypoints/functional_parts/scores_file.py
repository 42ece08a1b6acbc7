"""`scores.txt`: one row per evaluation, tab-separated, as PFRL writes it.

Keyed by its column `steps`. Rows are appended; a new column, or rows that a resumed run takes back,
rewrite the file atomically.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from workers.entrypoints.table_files import replace_text, step_in

BASIC_COLUMNS: Final = ("steps", "episodes", "elapsed", "mean", "median", "stdev", "max", "min")
"""Env_steps, training episodes and seconds so far, then of the returns: mean, median, sample
standard deviation, greatest, least.
"""

SCORES_FILE: Final = "scores.txt"
_TAB: Final = "\t"


class ScoresFile:
    """The table in one file. What earlier trainings wrote stays, but rows after `keep_until`.

    Args:
        path: The file; made with a header if it is absent.
        columns: Columns of the header, in this order after those that the file has already.
        keep_until: Rows with more steps are dropped. A row that a killed process did not finish
            always is.
    """

    def __init__(self, path: Path, columns: Sequence[str], keep_until: int) -> None:
        self._path = path
        self._columns: list[str] = []
        self._rows: list[list[str]] = []
        before = path.read_text("utf-8") if path.exists() else ""
        if before:
            self._read(before, keep_until)
        self._columns += [name for name in columns if name not in self._columns]
        if self._text() != before:
            replace_text(self._path, self._text())

    @property
    def columns(self) -> tuple[str, ...]:
        """The header."""
        return tuple(self._columns)

    def column(self, name: str) -> list[float]:
        """Returns the numbers of a column, without blank cells."""
        place = self._columns.index(name)
        return [float(row[place]) for row in self._rows if place < len(row) and row[place]]

    def append(self, row: Mapping[str, object]) -> None:
        """Appends a row.

        A column that is new goes to the end of the header, one that is missing stays blank.
        """
        new = [name for name in row if name not in self._columns]
        self._columns += new
        cells = [_cell(row[name]) if name in row else "" for name in self._columns]
        self._rows.append(cells)
        if new:
            replace_text(self._path, self._text())
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_TAB.join(cells) + "\n")

    def _read(self, text: str, keep_until: int) -> None:
        header, *lines = text.split("\n")
        self._columns = header.split(_TAB)
        whole = lines[:-1]  # what follows the last line end was not finished
        rows = [line.split(_TAB) for line in whole]
        self._rows = [
            row for row in rows if len(row) == len(self._columns) and step_in(row[0]) <= keep_until
        ]

    def _text(self) -> str:
        width = len(self._columns)
        lines = [self._columns, *(row + [""] * (width - len(row)) for row in self._rows)]
        return "".join(_TAB.join(line) + "\n" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace(_TAB, " ").replace("\n", " ")
