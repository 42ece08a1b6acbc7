"""Writes numbers as TensorBoard events.

The package `tensorboard` is needed only when the first number is written.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.recording.tensorboard import writer_class


class ScalarEvents:
    """Event files in one directory, which are opened with the first number.

    Args:
        directory: Directory of the event files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writer: Any = None

    def write(self, step: int, values: Mapping[str, object]) -> None:
        """Writes numbers at a step and flushes; values that are not numbers are skipped.

        Raises:
            ImportError: If the package is missing; the message says what to install.
        """
        if self._writer is None:
            self._writer = writer_class()(log_dir=str(self._directory))
        for name, value in values.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(name, float(value), step)
        self._writer.flush()

    def close(self) -> None:
        """Closes the files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
