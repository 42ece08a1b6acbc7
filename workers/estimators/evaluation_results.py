"""Results of evaluations: each series is a file of JSON rows in its own directory."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from workers.core.types import JsonObject
from workers.estimators.summaries import append_row
from workers.recording.events import ScalarEvents

RESULTS_FILE: Final = "results.jsonl"
RESERVED: Final = "wall"


def series_directory(model_dir: str | Path, name: str | None) -> Path:
    """Returns the directory of a series: `eval_<name>`, or `eval` without a name."""
    return Path(model_dir) / (f"eval_{name}" if name else "eval")


def write_result(
    model_dir: str | Path,
    name: str | None,
    result: Mapping[str, Any],
    *,
    writes_events: bool = False,
) -> None:
    """Appends a result, with the seconds since the epoch as `wall`, to its series.

    With `writes_events`, also writes the result as TensorBoard events.
    """
    directory = series_directory(model_dir, name)
    append_row(directory / RESULTS_FILE, {RESERVED: time.time(), **result})
    if writes_events:
        board = ScalarEvents(directory)
        board.write(
            result["global_step"],
            {key: value for key, value in result.items() if not key.startswith("global_")},
        )
        board.close()


def read_results(model_dir: str | Path, name: str | None) -> list[JsonObject]:
    """Returns the results of a series, the oldest first.

    An incomplete row, which a killed process has left, is skipped.
    """
    path = series_directory(model_dir, name) / RESULTS_FILE
    rows: list[dict[str, object]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows.append({key: value for key, value in row.items() if key != RESERVED})
    return rows
