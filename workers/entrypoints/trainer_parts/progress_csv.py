"""The table of a training, one row per epoch, as a CSV file that people open.

A key that turns up later becomes a column then; the rows before stay blank in it. A row is there
before the snapshot of its epoch, so after a kill the table may be one row ahead: a resume goes back
to the rows that the snapshot knows.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.core.types import StateTree
from workers.entrypoints.table_files import replace_text, set_aside

FILE_NAME = "progress.csv"


class ProgressCsv:
    """Appends rows to a file.

    Args:
        path: The file; `begin` sets which rows of an existing one are kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._rows = 0

    def begin(self, columns: Sequence[str] = (), rows: Sequence[Sequence[str]] = ()) -> None:
        """Makes the file hold these rows and goes on from there.

        A file of another training is set aside as `progress.<n>.csv`.

        Args:
            columns: Header.
            rows: Cells of the rows that are kept, as `read_rows` returns them.
        """
        _, old_rows = read_rows(self.path)
        kept = [list(row) for row in rows]
        if old_rows and (
            not kept or [cells[: len(columns)] for cells in old_rows[: len(kept)]] != kept
        ):
            set_aside(self.path)
        self._columns, self._rows = list(columns), len(kept)
        if kept or self.path.exists():
            self._rewrite(kept)

    def append(self, row: Mapping[str, object]) -> None:
        """Appends a row in one write; new keys become columns, missing ones stay blank."""
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
        """Returns header and number of rows."""
        return {"columns": list(self._columns), "rows": self._rows}

    def _rewrite(self, rows: Sequence[Sequence[str]]) -> None:
        if not self._columns:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(self.path, _lines([self._columns, *rows]))


def read_rows(path: Path, state: StateTree | None = None) -> tuple[list[str], list[list[str]]]:
    """Returns header and rows of a table; nothing where there is none.

    A torn last line, left by a kill, does not count.

    Args:
        path: The file.
        state: What `ProgressCsv.state_dict` returned: the table as it was then.
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
