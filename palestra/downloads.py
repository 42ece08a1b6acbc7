"""Writes stored files of a run to the user's disk.

A file is verified, and complete or absent; it never lies outside the directory that was named.

Chooses the names on disk. Independent of the command line.
"""

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from palestra.contract.names import EXPORT_FILES, ExportFormat
from palestra.contract.resources import ArtifactView, SnapshotView
from palestra.contract.states import SnapshotState
from palestra.errors import PalestraError

_PLAIN: Final = re.compile(r"[^A-Za-z0-9._ +=@,-]")
_RESERVED: Final = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_MAX_PARTS: Final = 8
_MAX_BYTES: Final = 200
"""Longest component of a path, in bytes.

File systems permit 255, and the name of the temporary file is a few longer.
"""


class DownloadError(PalestraError):
    """The file could not be downloaded, or its content differs from the server's."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file on the server."""

    artifact_id: str
    name: str
    """Text that the uploader chose; not a safe path."""
    size: int
    sha256: str


def describe_artifact_file(view: ArtifactView) -> StoredFile:
    """Returns the stored file that an artifact describes."""
    return StoredFile(view.id, view.name, view.size, view.sha256)


def choose_snapshot(run_id: str, snapshots: Iterable[SnapshotView], choice: str) -> SnapshotView:
    """Returns the stored snapshot that `best`, `newest` or an id denotes.

    Raises:
        DownloadError: If there is none; the message names the existing ones.
    """
    verified = [row for row in snapshots if row.state is SnapshotState.VERIFIED]
    for row in verified:
        if (
            row.id == choice
            or (choice == "best" and row.best)
            or (choice == "newest" and row.newest)
        ):
            return row
    known = ", ".join(row.id for row in verified[:5]) or "none"
    raise DownloadError(
        f"{run_id} has no stored snapshot {choice!r} (stored, the newest first: {known})"
    )


def list_snapshot_files(snapshot: SnapshotView) -> list[StoredFile]:
    """Returns the files of a verified snapshot."""
    return [
        StoredFile(file.artifact_id, file.name, file.size, file.sha256)
        for file in snapshot.files
        if file.artifact_id is not None
    ]


def list_export_files(
    run_id: str, exports: Iterable[ArtifactView], form: ExportFormat
) -> list[StoredFile]:
    """Returns the files of the newest export in a format.

    `exports` begins with the newest one.

    Raises:
        DownloadError: If there is none; the message states how to make one.
    """
    names = EXPORT_FILES[form]
    stored = [row for row in exports if row.stored and row.name in names]
    newest = next((row.attempt_id for row in stored if row.name == names[0]), None)
    if newest is None:
        raise DownloadError(
            f"{run_id} has no export in the format {form}: `palestra export {run_id} --format "
            f"{form}` makes one"
        )
    return [describe_artifact_file(row) for row in stored if row.attempt_id == newest]


def make_safe_name(name: str) -> Path:
    """Returns a safe relative path for a stored name: the name itself if it is safe."""
    parts = [
        _safe_part(part)
        for part in name.replace("\\", "/").split("/")
        if part not in {"", ".", ".."}
    ]
    return Path(*(parts[-_MAX_PARTS:] or ["unnamed"]))


def _safe_part(part: str) -> str:
    plain = _PLAIN.sub("_", part).encode()[:_MAX_BYTES].decode().strip(" .") or "_"
    return f"_{plain}" if part.startswith(".") or _RESERVED.fullmatch(plain) else plain


def store(file: StoredFile, directory: Path, content: Callable[[int], Iterator[bytes]]) -> Path:
    """Writes a file below a directory and returns its path.

    An existing file with this content is kept.

    Args:
        file: Its description by the server.
        directory: Directory to write to; it is created.
        content: Yields the bytes from an offset on, and is asked again for the rest where they end
            early.

    Raises:
        DownloadError: If the content differs from the stored one, is incomplete, or another file
            has its path.
    """
    target = _target(directory, file.name)
    if target.exists() or target.is_symlink():
        if _holds(target, file):
            return target
        raise DownloadError(
            f"{target} exists with another content: move it away, or name another directory"
        )
    with _open_draft(target) as draft:
        _receive(file, draft, content)
    return target


def _target(directory: Path, name: str) -> Path:
    target = directory / make_safe_name(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(
            f"cannot make the directory {target.parent}: {error.strerror}"
        ) from None
    if not target.parent.resolve().is_relative_to(directory.resolve()):
        raise DownloadError(
            f"{target.parent} leads out of {directory}: remove the symbolic link, or name another "
            "directory"
        )
    return target


def _holds(target: Path, file: StoredFile) -> bool:
    if target.is_symlink() or not target.is_file() or target.stat().st_size != file.size:
        return False
    with target.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


@contextmanager
def _open_draft(target: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces the target on success and is deleted on failure."""
    path = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with path.open("xb") as draft:
            yield draft
            draft.flush()
            os.fsync(draft.fileno())
        path.replace(target)
    except OSError as error:
        full = (
            " Free some space and try again." if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
        )
        raise DownloadError(f"cannot write {target}: {error.strerror}.{full}") from None
    finally:
        path.unlink(missing_ok=True)


def _receive(file: StoredFile, draft: BinaryIO, content: Callable[[int], Iterator[bytes]]) -> None:
    digest, received = hashlib.sha256(), 0
    while True:
        before = received
        for chunk in content(received):
            received += len(chunk)
            if received > file.size:
                raise DownloadError(
                    f"{file.name} is larger than the {file.size} bytes that the server names: try "
                    "again"
                )
            digest.update(chunk)
            draft.write(chunk)
        if received == file.size:
            break
        if received == before:
            raise DownloadError(
                f"{file.name} ended after {received} of {file.size} bytes: try again"
            )
    if digest.hexdigest() != file.sha256:
        raise DownloadError(
            f"{file.name} is damaged: its SHA-256 is not the one that the server names. Try again."
        )
