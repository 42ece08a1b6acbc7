"""The server's keys for device cookies, in a file of the data directory."""

import contextlib
import errno
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

import structlog

_log = structlog.get_logger("palestra.access")

FILE: Final = "device-cookies.keys"
_BYTES: Final = 32
_MAX_KEYS: Final = 2
"""Keys that the file holds after a rotation: the new one, and the one before it."""


class DeviceKeys:
    """Keys in a file that its owner alone may read, one a line; the first one signs.

    All server processes of a data directory share the file, and notice when it is replaced. Where
    the directory cannot be written, the process uses a key of its own until it ends.

    Args:
        data_dir: The data directory.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        self._read_as: tuple[int, int] | None = None
        self._keys: tuple[bytes, ...] = ()

    def current(self) -> tuple[bytes, ...]:
        """Returns the keys, the one that signs first; creates the file if there is none."""
        try:
            if not self._path.exists():
                self._create()
            found = self._path.stat()
            if (found.st_ino, found.st_mtime_ns) != self._read_as:
                self._keys = _read(self._path)
                self._read_as = (found.st_ino, found.st_mtime_ns)
                if found.st_mode & 0o077:
                    _log.warning("access.device_key_readable", remedy=f"chmod 600 {FILE}")
        except OSError as error:
            if not self._keys:
                _log.warning("access.device_key_not_stored", error=error.strerror)
        self._keys = self._keys or (secrets.token_bytes(_BYTES),)
        return self._keys

    def rotate(self) -> None:
        """Puts a new key before the current one and drops older ones.

        Cookies that the current key signed stay valid until the next rotation.

        Raises:
            OSError: If the file cannot be written.
        """
        kept = _read(self._path)[: _MAX_KEYS - 1] if self._path.exists() else ()
        self._write((secrets.token_bytes(_BYTES), *kept)).replace(self._path)

    def _create(self) -> None:
        draft = self._write((secrets.token_bytes(_BYTES),))
        try:
            # Of several processes that start at once, the first one's key is everybody's.
            with contextlib.suppress(FileExistsError):
                os.link(draft, self._path)
        finally:
            draft.unlink()

    def _write(self, keys: tuple[bytes, ...]) -> Path:
        """Writes a draft beside the file, which no other user may read; returns its path."""
        descriptor, draft = tempfile.mkstemp(prefix=f".{FILE}.", dir=self._path.parent)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write("".join(f"{key.hex()}\n" for key in keys))
        return Path(draft)


def _read(path: Path) -> tuple[bytes, ...]:
    """Returns the keys of the file.

    Raises:
        OSError: If the file cannot be read or holds something else.
    """
    try:
        keys = tuple(bytes.fromhex(line) for line in path.read_text("ascii").splitlines())
    except ValueError:
        keys = ()
    if not keys or any(len(key) != _BYTES for key in keys):
        raise OSError(errno.EINVAL, f"it holds something else than keys: delete {FILE}")
    return keys
