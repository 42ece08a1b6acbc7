"""`progress.csv`: a table with one row per epoch of a training.

A new key adds a column, which is blank in earlier rows. The row of an epoch is written before its
snapshot, so a killed training may leave one row too many: a resume removes the rows that are not
counted in the snapshot.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.core.types import StateTree
from workers.entrypoints.table_files import rename_existing, replace_text

FILE_NAME = "progress.csv"


class ProgressCsv:
    """Appends rows to a CSV file.

    Args:
        path: Path of the file; `begin` defines which rows of an existing file are kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._rows = 0

    def begin(self, columns: Sequence[str] = (), rows: Sequence[Sequence[str]] = ()) -> None:
        """Reduces the file to the given rows, to which `append` adds.

        If the existing file does not begin with these rows, or none are given, it belongs to
        another training and is renamed to `progress.<n>.csv`.

        Args:
            columns: Names of the columns.
            rows: Cells of the rows to keep, as `read_rows` returns them.
        """
        _, old_rows = read_rows(self.path)
        kept = [list(row) for row in rows]
        if old_rows and (
            not kept or [cells[: len(columns)] for cells in old_rows[: len(kept)]] != kept
        ):
            rename_existing(self.path)
        self._columns, self._rows = list(columns), len(kept)
        if kept or self.path.exists():
            self._rewrite(kept)

    def append(self, row: Mapping[str, object]) -> None:
        """Appends a row in one write; new keys add columns, cells of missing keys are blank."""
        new = [key for key in row if key not in self._columns]
        if new:
            _, rows = read_rows(self.path)
            self._columns += new
            self._rewrite([[*cells, *[""] * len(new)] for cells in rows])
        line = _lines([[str(row.get(column, "")) for column in self._columns]])
        descriptor = os.open(
            self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
        self._rows += 1

    def state_dict(self) -> StateTree:
        """Returns the names of the columns and the number of rows."""
        return {"columns": list(self._columns), "rows": self._rows}

    def _rewrite(self, rows: Sequence[Sequence[str]]) -> None:
        if not self._columns:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(self.path, _lines([self._columns, *rows]))


def read_rows(path: Path, state: StateTree | None = None) -> tuple[list[str], list[list[str]]]:
    """Returns the columns and rows of a table; two empty lists if there is no file.

    An incomplete last line, which a killed process has left, is skipped.

    Args:
        path: Path of the file.
        state: Result of `ProgressCsv.state_dict`; later columns and rows are left out. `None`
            returns all.
    """
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return [], []
    whole = text[: text.rfind("\n") + 1]
    lines = list(csv.reader(io.StringIO(whole, newline="")))
    columns, rows = (lines[0], lines[1:]) if lines else ([], [])
    if state is not None:
        columns = columns[: len(state["columns"])]
        rows = [cells[: len(columns)] for cells in rows[: int(state["rows"])]]
    return columns, rows


def _lines(rows: Sequence[Sequence[str]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
