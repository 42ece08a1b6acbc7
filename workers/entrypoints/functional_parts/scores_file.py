"""`scores.txt`: one tab-separated row per evaluation, in PFRL's format.

The column `steps` identifies a row. Rows are appended. The file is replaced atomically when a
column is added or when a resumed run removes rows.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from workers.entrypoints.table_files import parse_step, replace_text

BASIC_COLUMNS: Final = ("steps", "episodes", "elapsed", "mean", "median", "stdev", "max", "min")
"""Env_steps, training episodes and seconds so far, then statistics of the evaluation's returns:
mean, median, sample standard deviation, maximum, minimum.
"""

SCORES_FILE: Final = "scores.txt"
_TAB: Final = "\t"


class ScoresFile:
    """A table in a tab-separated file. Rows of earlier trainings up to `keep_until` are kept.

    Args:
        path: Path of the file; created with a header if it does not exist.
        columns: Names of columns; new ones are added after the columns that the file has already.
        keep_until: Rows with a later env_step are removed. An incomplete last row, which a killed
            process has left, is always removed.
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
        """Names of the columns in the order of the header."""
        return tuple(self._columns)

    def column(self, name: str) -> list[float]:
        """Returns the numbers in a column; blank cells are skipped."""
        place = self._columns.index(name)
        return [float(row[place]) for row in self._rows if place < len(row) and row[place]]

    def append(self, row: Mapping[str, object]) -> None:
        """Appends a row.

        Keys that are not columns yet are added at the end of the header. Cells of columns that
        `row` lacks are blank.
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
        # Text after the last newline is an incomplete row.
        whole = lines[:-1]
        rows = [line.split(_TAB) for line in whole]
        self._rows = [
            row
            for row in rows
            if len(row) == len(self._columns) and parse_step(row[0]) <= keep_until
        ]

    def _text(self) -> str:
        width = len(self._columns)
        lines = [self._columns, *(row + [""] * (width - len(row)) for row in self._rows)]
        return "".join(_TAB.join(line) + "\n" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace(_TAB, " ").replace("\n", " ")
