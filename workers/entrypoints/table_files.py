"""Text files that grow by a line and that a resumed training cuts back to where it begins."""

import os
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Writes a file that a kill leaves as it was or as it should be."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def set_aside(path: Path) -> Path | None:
    """Renames a file that a new training would overwrite to `<stem>.<number><suffix>`.

    Returns the new name, if there was a file.
    """
    if not path.exists():
        return None
    number = 1
    while (target := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    path.rename(target)
    return target


def finished_lines(path: Path) -> list[str]:
    """Returns the lines of a file, without a last one that a killed process did not finish."""
    text = path.read_text("utf-8") if path.exists() else ""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def step_in(cell: str) -> float:
    """Returns the env_step in a cell; infinity where it holds no number."""
    try:
        return float(cell)
    except ValueError:
        return float("inf")
