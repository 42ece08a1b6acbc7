"""Tells the supervisor about once a second how far the run is."""

import json
import threading
from pathlib import Path
from typing import Final

from workers.core.protocols import ClockView

PROGRESS_SECONDS: Final = 1.0


class ProgressFile:
    """Writes `{"env_step", "update", "episode", "iteration"}` into a file, atomically, from a thread of its own.

    Args:
        path: The file.
        clock: Read without a lock: the counters may be one iteration apart.
        seconds: Between two writes.
    """

    def __init__(self, path: Path, clock: ClockView, seconds: float = PROGRESS_SECONDS) -> None:
        self._path = path
        self._clock = clock
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_often, name="progress", daemon=True)

    def start(self) -> None:
        """Starts writing."""
        self.write()
        self._thread.start()

    def close(self) -> None:
        """Writes the last state."""
        self._stop.set()
        self._thread.join()
        self.write()

    def write(self) -> None:
        """Writes once. A disk that is full now loses nothing: the next write says it all."""
        clock = self._clock
        counters = {"env_step": clock.env_steps, "update": clock.updates, "episode": clock.episodes, "iteration": clock.iterations}
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        try:
            temporary.write_text(json.dumps(counters))
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def _write_often(self) -> None:
        while not self._stop.wait(self._seconds):
            self.write()
