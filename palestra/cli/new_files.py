"""Files that a command writes and that must not exist yet."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from palestra.cli.output import fail_usage

STDOUT: Final = Path("-")


@contextmanager
def open_new_file(file: Path) -> Iterator[BinaryIO]:
    """Yields the stream to write to; `-` is standard output. An incomplete file is removed."""
    if file == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Such files name people: nobody else on this machine reads them.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        fail_usage(f"{file}: {error.strerror}. Name a file that does not exist yet")
    try:
        with os.fdopen(descriptor, "wb") as target:
            yield target
    except BaseException:
        file.unlink(missing_ok=True)
        raise
