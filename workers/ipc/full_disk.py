"""Detects failures that a full disk caused, and full disks.

Imports little, since supervisor and trainer both use it.
"""

import errno
import re
import shutil
from pathlib import Path
from typing import Final

FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
ADVICE: Final = "The worker's disk is full: free some space, then resume the run."
NO_SPACE: Final = "its disk is full, free some space."
"""Why a worker with a full disk could not start a trainer."""
EXIT_STATUS: Final = 74
"""Exit status (`EX_IOERR`) of a trainer whose report does not fit on the disk."""

_FULL: Final = re.compile(
    rf"\(?os error ({errno.ENOSPC}|{errno.EDQUOT})\)?|no space left on device|disk quota "
    r"exceeded|disk is full",
    re.IGNORECASE,
)
"""Messages of libraries that wrap the system's error in their own exceptions.

They are those of safetensors, SQLite and programs that were called.
"""
_CUT: Final = re.compile(
    r"file write failed|PytorchStreamWriter failed|requested and \d+ written|unexpected pos"
)
"""Messages of torch and NumPy for an incomplete write, whatever its cause."""
_LITTLE_BYTES: Final = 2**20


def is_full_error(error: BaseException, directory: Path | None = None) -> bool:
    """Returns whether an exception, not its causes, means that a disk or a quota is full.

    Args:
        error: The exception.
        directory: The attempt's directory; its free space decides for an incomplete write without
            a stated cause.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL_ERRNOS
    text = str(error)
    return bool(_FULL.search(text)) or (
        directory is not None and bool(_CUT.search(text)) and is_almost_full(directory)
    )


def is_almost_full(directory: Path) -> bool:
    """Returns whether the disk of a directory has less than a MiB free."""
    try:
        return shutil.disk_usage(directory).free < _LITTLE_BYTES
    except OSError:
        return False
