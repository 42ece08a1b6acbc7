"""Writes the progress of a run for the supervisor about once a second."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from workers.core.protocols import ClockView

PROGRESS_SECONDS: Final = 1.0


class ProgressFile:
    """Writes the progress of a training into a file, atomically, from a thread of its own.

    The file holds `{"env_step", "update", "episode", "iteration"}`.

    Args:
        path: Path of the file.
        clocks: One clock per run, read without a lock, so that counters may be one iteration apart.
            The counters in the file are those of the first run, to which the supervisor attributes
            its measurements; the iterations are summed over all runs, so that the file changes as
            long as any run makes progress.
        seconds: Seconds between two writes.
    """

    def __init__(
        self, path: Path, clocks: Sequence[ClockView], seconds: float = PROGRESS_SECONDS
    ) -> None:
        self._path = path
        self._clocks = tuple(clocks)
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_often, name="progress", daemon=True)

    def start(self) -> None:
        """Starts the thread that writes the progress."""
        self.write()
        self._thread.start()

    def close(self) -> None:
        """Stops the thread and writes the final progress."""
        self._stop.set()
        self._thread.join()
        self.write()

    def write(self) -> None:
        """Writes the progress once. Ignores a full disk, since the next write repeats it."""
        first, iterations = self._clocks[0], sum(clock.iterations for clock in self._clocks)
        counters = {
            "env_step": first.env_steps,
            "update": first.updates,
            "episode": first.episodes,
            "iteration": iterations,
        }
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        try:
            temporary.write_text(json.dumps(counters))
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def _write_often(self) -> None:
        while not self._stop.wait(self._seconds):
            self.write()
