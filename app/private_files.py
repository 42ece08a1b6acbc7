"""Keeps other users of the machine from reading the database and the stored blobs."""

import os
import stat
from pathlib import Path
from typing import Final

from app.settings import Settings

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_BESIDE: Final = ("", "-wal", "-shm", ".lock")
"""Endings of the names of an SQLite file and of the files beside it."""


def make_files_private() -> None:
    """Makes this process create files that only its user can read.

    Called by programs before their `main`, since it holds for the whole process.
    """
    os.umask(_OTHERS)


def tighten_files(settings: Settings) -> list[Path]:
    """Takes the rights of other users on the SQLite file and on the folder of the blobs.

    Files of earlier versions and restored backups have them. Files of another owner are left.

    Returns:
        The files that were changed.
    """
    database = settings.sqlite_path
    files = [] if database is None else [Path(f"{database}{ending}") for ending in _BESIDE]
    return [place for place in (*files, settings.artifact_dir) if _tighten(place)]


def _tighten(place: Path) -> bool:
    try:
        mode = place.stat().st_mode
        if not mode & _OTHERS:
            return False
        place.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except OSError:
        return False
    return True
