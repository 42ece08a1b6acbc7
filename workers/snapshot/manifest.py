"""The manifest of a snapshot: written last, it makes the directory a snapshot.

Owns the format and its verification. A directory without a manifest is not a snapshot; a directory
whose files differ from those that the manifest lists is refused.
"""

import hashlib
import json
import os
import stat
from collections.abc import Container
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from palestra.contract.documents import Document
from palestra.contract.names import Counter
from palestra.contract.states import SnapshotReason
from palestra.contract.telemetry import Number, RunId, SnapshotFile, SnapshotId
from workers.core.errors import SnapshotUnreadableError

FORMAT_VERSION: Final = 4
MANIFEST: Final = "MANIFEST.json"
_CHUNK: Final = 1 << 20
_MAX_MANIFEST_BYTES: Final = 4 << 20


class Manifest(Document):
    """Origin, counters and files of a snapshot."""

    format: str = "palestra-snapshot"
    format_version: int = FORMAT_VERSION
    snapshot_id: SnapshotId
    run_id: RunId
    attempt_id: str
    experiment_id: str
    definition_hash: str
    seed: Counter
    parent: SnapshotId | None
    """Snapshot that the attempt began from."""
    reason: SnapshotReason
    score: Number | None
    resume_exact: bool
    scales_by_bounds: bool = False
    """Whether built-in networks divide uint8 observations by the bounds of their space.

    Otherwise they divide them by 255, as all did before format 4.
    """
    stop: str | None = None
    """A `StopReason` if training ended here; `None` if it continued or an exception ended it."""
    env_step: Counter
    update: Counter
    episode: Counter
    epoch: Counter = 0
    """Epochs closed."""
    iteration: Counter = 0
    wall: float
    versions: dict[str, str]
    """Palestra, Python, torch, numpy, gymnasium and CUDA that wrote it."""
    device: str
    files: tuple[SnapshotFile, ...]


def describe_file(path: Path, root: Path) -> SnapshotFile:
    """Returns name, size and SHA-256 of a file below a snapshot's directory.

    Raises:
        ValueError: If its name is none that a snapshot's file may have.
    """
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return SnapshotFile(
        name=path.relative_to(root).as_posix(), size=size, sha256=digest.hexdigest()
    )


def verify(directory: Path, checked: Container[str] = ()) -> Manifest:
    """Verifies sizes and SHA-256 of a snapshot's files, and returns its manifest.

    Args:
        directory: Directory of the snapshot.
        checked: Names of files that were verified before, possibly in another snapshot that shares
            them, and are not read again.

    Raises:
        SnapshotUnreadableError: If the snapshot is incomplete, damaged, of a newer format, or holds
            files that its manifest does not list.
    """
    if directory.is_symlink() or not directory.is_dir():
        raise SnapshotUnreadableError(f"{directory.name}: not a directory")
    present = set(files_below(directory)) - {MANIFEST}
    manifest = read_manifest(directory)
    listed = {file.name: file for file in manifest.files}
    if present != set(listed):
        missing, extra = sorted(set(listed) - present), sorted(present - set(listed))
        raise SnapshotUnreadableError(
            f"{directory.name}: the manifest's files are not those present (missing {missing}, "
            f"unknown {extra})"
        )
    for name, file in listed.items():
        if name not in checked and describe_file(directory / name, directory) != file:
            raise SnapshotUnreadableError(
                f"{directory.name}: {name} is not what was written: size or SHA-256 differ"
            )
    return manifest


def read_manifest(directory: Path) -> Manifest:
    """Reads the manifest without verifying the files that it lists.

    Raises:
        SnapshotUnreadableError: If there is no manifest, or this version cannot read it.
    """
    path = directory / MANIFEST
    try:
        if path.stat().st_size > _MAX_MANIFEST_BYTES:
            raise SnapshotUnreadableError(
                f"{directory.name}: the manifest has more than {_MAX_MANIFEST_BYTES} bytes"
            )
        raw = path.read_bytes()
        _check_format(directory.name, json.loads(raw))
        return Manifest.model_validate_json(raw)
    except FileNotFoundError:
        raise SnapshotUnreadableError(
            f"{directory.name}: no manifest, so it was never finished"
        ) from None
    except (ValueError, ValidationError, OSError) as error:
        raise SnapshotUnreadableError(
            f"{directory.name}: the manifest cannot be read: {error}"
        ) from error


def files_below(directory: Path) -> list[str]:
    """Returns the names of all files below a directory, relative to it.

    Raises:
        SnapshotUnreadableError: If there is anything but plain files and directories.
    """
    names: list[str] = []
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            names.append(path.relative_to(directory).as_posix())
        elif not stat.S_ISDIR(mode):
            raise SnapshotUnreadableError(
                f"{directory.name}: {path.relative_to(directory)} is not a plain file"
            )
    return names


def sync_file(path: Path) -> None:
    """Forces a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_format(name: str, document: object) -> None:
    if not isinstance(document, dict) or document.get("format") != "palestra-snapshot":
        raise SnapshotUnreadableError(f"{name}: this is no snapshot of Palestra")
    version = document.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise SnapshotUnreadableError(f"{name}: the manifest names no format version")
    if version != FORMAT_VERSION:
        made_by = document.get("versions", {}).get("palestra", "of another version")
        remedy = "upgrade Palestra" if version > FORMAT_VERSION else "use it with that version"
        raise SnapshotUnreadableError(
            f"{name}: made by Palestra {made_by} in format {version}, this one reads format "
            f"{FORMAT_VERSION}: {remedy}"
        )
