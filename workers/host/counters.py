"""Counters that several processes increment: each appends a byte to a file."""

import os
from pathlib import Path


class Counters:
    """Named counters in a worker's state directory.

    Args:
        state_directory: The counters are in `counters/`.
    """

    def __init__(self, state_directory: Path) -> None:
        self._directory = state_directory / "counters"
        self._directory.mkdir(parents=True, exist_ok=True)

    def count(self, name: str) -> None:
        """Increments a counter by one."""
        descriptor = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, b".")
        finally:
            os.close(descriptor)

    def values(self) -> dict[str, int]:
        """Returns the value of every counter by name."""
        return {path.name: path.stat().st_size for path in sorted(self._directory.iterdir())}
