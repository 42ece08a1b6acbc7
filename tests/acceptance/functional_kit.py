"""Helpers for the tests of the training functions."""

import json
import logging
from pathlib import Path
from typing import Any


def list_directories(outdir: Path) -> set[str]:
    """Returns the names of the directories that a training wrote."""
    return {path.name for path in outdir.iterdir() if path.is_dir()}


def read_scores(outdir: Path) -> list[dict[str, str]]:
    """Returns the rows of scores.txt."""
    header, *rows = [line.split("\t") for line in (outdir / "scores.txt").read_text().splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def read_evaluation_steps(outdir: Path) -> list[int]:
    """Returns the column `steps` of `scores.txt` as integers."""
    return [int(row["steps"]) for row in read_scores(outdir)]


def read_manifest(directory: Path) -> dict[str, Any]:
    """Returns the manifest of a snapshot."""
    read: dict[str, Any] = json.loads((directory / "MANIFEST.json").read_text())
    return read


class RecordingLogger(logging.Handler):
    """Collects the messages of a logger that no other test uses."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        # A logger of its own, which `logging.getLogger` does not share.
        self.logger = logging.Logger("test", logging.INFO)  # noqa: LOG001
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class FakeEvaluator:
    """A caller's evaluator that counts its calls and returns the scores 1, 2, 3 and so on."""

    def __init__(self, interval: int = 1) -> None:
        self.max_score = 0.0
        self.asked: list[tuple[int, int]] = []
        self.interval = interval
        self.next = interval

    def evaluate_if_necessary(self, t: int, episodes: int) -> float | None:
        self.asked.append((t, episodes))
        if t < self.next:
            return None
        self.next += self.interval
        self.max_score += 1.0
        return self.max_score
