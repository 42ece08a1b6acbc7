"""Writes the progress of a run for the supervisor about once a second."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from workers.core.types import JsonObject

PROGRESS_SECONDS: Final = 1.0


class ProgressFile:
    """Writes the progress of an attempt into a file, atomically, from a thread of its own.

    Args:
        path: Path of the file.
        describe: Returns what the file holds, a JSON object, without waiting for a lock; called by
            both threads.
        seconds: Seconds between two writes.
    """

    def __init__(
        self, path: Path, describe: Callable[[], JsonObject], seconds: float = PROGRESS_SECONDS
    ) -> None:
        self._path = path
        self._describe = describe
        self._seconds = seconds
        self._writing = threading.Lock()
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
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        with self._writing:
            try:
                temporary.write_text(json.dumps(self._describe()))
                temporary.replace(self._path)
            except OSError:
                temporary.unlink(missing_ok=True)

    def _write_often(self) -> None:
        while not self._stop.wait(self._seconds):
            self.write()
