"""The address of the server of a data directory, for commands that run on the same machine."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from app.settings import Settings

_FILE: Final = "server.address"


@contextmanager
def announce_address(settings: Settings) -> Iterator[None]:
    """Writes the server's address into its data directory, for `find_running_address`.

    A lock that ends with the process marks the address as valid.

    Writes nothing if the directory is read-only, or if another server process of the same
    database has announced its address.
    """
    try:
        handle: IO[str] = (settings.data_dir / _FILE).open("a+", encoding="utf-8")
    except OSError:
        yield
        return
    with handle:
        if _lock(handle, fcntl.LOCK_EX):
            handle.truncate(0)
            handle.write(settings.base_url)
            handle.flush()
        yield


def find_running_address(settings: Settings) -> str | None:
    """Returns the address of the server that runs on the data directory; `None` for none."""
    try:
        with (settings.data_dir / _FILE).open(encoding="utf-8") as handle:
            return None if _lock(handle, fcntl.LOCK_SH) else handle.read().strip() or None
    except OSError:
        return None


def _lock(handle: IO[str], kind: int) -> bool:
    """Tries to lock the file; returns whether no other process holds a conflicting lock."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
