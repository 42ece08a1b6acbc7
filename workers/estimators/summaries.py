"""Summaries of a training as rows of JSON in its directory."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from workers.core.types import JsonObject
from workers.recording.events import ScalarEvents
from workers.supervised.run_session import RunSession, RunValues

SUMMARIES_FILE: Final = "summaries.jsonl"


class SummaryWriter:
    """Appends rows of JSON to `summaries.jsonl`.

    A row is `{"global_step", "global_timestep", "global_episode", "wall", …}`.

    Args:
        directory: Directory of the file; created with the first row.
        writes_events: Whether to also write the numbers as TensorBoard events.
    """

    def __init__(self, directory: str | Path, *, writes_events: bool = False) -> None:
        self._path = Path(directory) / SUMMARIES_FILE
        self._events = ScalarEvents(Path(directory)) if writes_events else None

    def write(self, session: RunSession, values: Mapping[str, object]) -> None:
        """Appends a row; numbers that are not finite become text."""
        append_row(self._path, {**counters(session), "wall": time.time(), **values})
        if self._events is not None:
            self._events.write(
                session.global_step,
                {name: value for name, value in values.items() if name not in counters(session)},
            )

    def close(self) -> None:
        """Closes the event files."""
        if self._events is not None:
            self._events.close()


def append_row(path: Path, row: Mapping[str, object]) -> None:
    """Appends one row of JSON to a file, whose directory is created if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({key: _to_json(value) for key, value in row.items()}, allow_nan=False) + "\n"
        )


def counters(session: RunSession) -> dict[str, int]:
    """Returns the three counters of a session."""
    return {
        name: getattr(session, name)
        for name in ("global_step", "global_timestep", "global_episode")
    }


def summary_values(session: RunSession, values: RunValues) -> JsonObject:
    """Returns the summary of a run that made an update.

    It holds the counters, the loss, the learning rate, the exploration rate, the metrics and, if an
    episode ended with the run, its statistics.
    """
    variables = session.variables
    found: JsonObject = {**counters(session)}
    if values.loss is not None:
        found["loss"] = float(values.loss)
    if (learning_rate := variables.learning_rate()) is not None:
        found["learning_rate"] = learning_rate
    if (rate := variables.exploration_rate()) is not None:
        found["exploration_rate"] = rate
    scalars = {name: float(value) for name, value in values.scalars.items()}
    return {**scalars, **found, **(_rewards(values) if values.episode is not None else {})}


def episode_values(session: RunSession, values: RunValues) -> JsonObject:
    """Returns the counters and the statistics of the episode that ended with the run."""
    return {**counters(session), **_rewards(values)}


def _rewards(values: RunValues) -> JsonObject:
    return (
        {}
        if values.episode is None
        else {key: value for key, value in asdict(values.episode).items() if value is not None}
    )


def _to_json(value: object) -> object:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
