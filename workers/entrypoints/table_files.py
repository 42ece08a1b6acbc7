"""Text files to which lines are appended and from which a resumed training removes later lines."""

import os
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Replaces a file atomically, and syncs its data to the disk before."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def rename_existing(path: Path) -> Path | None:
    """Renames a file that a new training would overwrite to `<stem>.<number><suffix>`.

    Returns the new path; `None` if there was no file.
    """
    if not path.exists():
        return None
    number = 1
    while (target := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    path.rename(target)
    return target


def complete_lines(path: Path) -> list[str]:
    """Returns the lines of a file, without a last line that lacks its newline.

    A killed process can leave such a line. Returns an empty list if there is no file.
    """
    text = path.read_text("utf-8") if path.exists() else ""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def parse_step(cell: str) -> float:
    """Returns the env_step in a cell; infinity if the cell holds no number."""
    try:
        return float(cell)
    except ValueError:
        return float("inf")
