"""`episodes.csv`: one row per training episode, with its return and its length."""

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from workers.core.null_parts import NoRecorder
from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, LearnReport
from workers.entrypoints.table_files import finished_lines, replace_text, step_in

EPISODES_FILE: Final = "episodes.csv"
COLUMNS: Final = ("step", "episode", "env", "return", "length", "terminated", "wall")
"""Env_step at the end, number from 1, environment, undiscounted return, env_steps, 1 or else 0
(truncated), seconds since the epoch.
"""


class EpisodesFile(NoRecorder):
    """A recorder that appends a line per episode.

    Args:
        path: The file; what earlier trainings wrote stays, but lines after `keep_until`.
        keep_until: Env_steps.
        wall: Seconds since the epoch.
    """

    def __init__(self, path: Path, keep_until: int, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        lines = finished_lines(path)[1:]
        kept = [line for line in lines if step_in(line.partition(",")[0]) <= keep_until]
        replace_text(path, "".join([",".join(COLUMNS) + "\n", *kept]))
        self._file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def tick(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Writes the episodes that ended."""
        del reports
        if not episodes:
            return
        number, wall = clock.episodes - len(episodes), round(self._wall(), 3)
        for place, (step, end) in enumerate(episodes, number + 1):
            self._writer.writerow(
                (
                    step,
                    place,
                    end.env_index,
                    end.episode_return,
                    end.episode_length,
                    int(end.terminated),
                    wall,
                )
            )
        self._file.flush()

    def flush(self) -> None:
        """Hands all lines to the system."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
