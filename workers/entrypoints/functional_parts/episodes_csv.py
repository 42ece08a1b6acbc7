"""`episodes.csv`: one row per training episode, with its return and its length."""

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from workers.core.null_parts import NoRecorder
from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, LearnReport
from workers.entrypoints.table_files import complete_lines, parse_step, replace_text

EPISODES_FILE: Final = "episodes.csv"
COLUMNS: Final = ("step", "episode", "env", "return", "length", "terminated", "wall")
"""Env_step at the end of the episode, number of the episode from 1, index of the environment,
undiscounted return, length in env_steps, 1 if terminated and 0 if truncated, seconds since the
epoch.
"""


class EpisodesFile(NoRecorder):
    """A recorder that appends a line per episode to a CSV file.

    Args:
        path: Path of the file. Existing lines up to `keep_until` are kept, later ones are removed.
        keep_until: Env_step of the last line to keep.
        wall: Returns the seconds since the epoch.
    """

    def __init__(self, path: Path, keep_until: int, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        lines = complete_lines(path)[1:]
        kept = [line for line in lines if parse_step(line.partition(",")[0]) <= keep_until]
        replace_text(path, "".join([",".join(COLUMNS) + "\n", *kept]))
        self._file = path.open("a", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Appends a line for each episode that ended, and flushes the file."""
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
        """Flushes the file."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
