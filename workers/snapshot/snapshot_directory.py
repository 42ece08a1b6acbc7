"""Writes a snapshot atomically, and reads it.

A snapshot is written to a temporary directory: all files are synced, the manifest is written last,
the directory is renamed and its parent synced. A kill at any time leaves the previous snapshot
intact. Replacing an existing directory takes two renames; if the process is killed between them,
`repair_snapshots` completes the replacement.

Several processes may write snapshots in one directory. A temporary directory has a unique name and
is locked by its writer, so that `repair_snapshots` does not remove it. A lock on the parent
excludes `repair_snapshots` while a temporary directory is created or renamed.
"""

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from palestra.contract.names import new_id
from palestra.contract.telemetry import SnapshotFile
from workers.core.protocols import ClockView
from workers.core.types import SnapshotReason, StateTree
from workers.snapshot.manifest import (
    MANIFEST,
    Manifest,
    describe_file,
    files_below,
    sync_file,
    verify,
)
from workers.snapshot.state_files import read_tree, write_tree

NEW: Final = ".tmp"
"""Suffix of a directory that is being written."""
OLD: Final = ".old"
"""Suffix of a directory while a new one replaces it."""
_ANY_MARK: Final = "[0-9a-f]" * 8
"""Pattern of the random part in the name of a temporary directory."""
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOwner:
    """The origin that each snapshot of an attempt states in its manifest."""

    run_id: str
    attempt_id: str
    experiment_id: str
    definition_hash: str
    seed: int
    parent: str | None
    versions: dict[str, str]
    device: str
    resume_exact: bool
    """Whether device and settings allow a bit-exact resume."""
    scales_by_bounds: bool = True
    """See `Manifest.scales_by_bounds`."""


@dataclass(frozen=True, slots=True)
class LoadedSnapshot:
    """A verified snapshot."""

    manifest: Manifest
    state: StateTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Counters and reason of a snapshot."""

    clock: ClockView
    reason: SnapshotReason
    score: float | None = None
    """Mean return of an evaluation made at exactly this state."""
    snapshot_id: str | None = None
    """ID of the snapshot; `None` creates a new one."""


@dataclass(frozen=True, slots=True)
class PreviousSnapshot:
    """An earlier snapshot of the same history.

    Its files of rows are hard-linked into the new snapshot if they hold the same rows.
    """

    directory: Path
    manifest: Manifest

    def find_shared_file(self, path: Path, name: str) -> SnapshotFile | None:
        """Returns the manifest's entry of the file `name`, if `path` is a hard link to that file.

        Returns `None` otherwise.
        """
        own = self.directory / name
        if not own.is_file() or not own.samefile(path):
            return None
        return next((file for file in self.manifest.files if file.name == name), None)


def write_snapshot(
    target: Path,
    owner: SnapshotOwner,
    state: StateTree,
    moment: Moment,
    before: PreviousSnapshot | None = None,
) -> Manifest:
    """Writes a complete snapshot as the directory `target`, in place of one that may be there.

    Raises:
        TypeError: If the state holds a value that cannot be saved.
        OSError: If the disk is full or fails. An existing `target` is not changed.
    """
    with _temporary_directory(target) as temporary:
        manifest = _write(temporary, owner, state, moment, before)
        with _hold_lock(target.parent):
            _put_in_place(temporary, target)
    sync_file(target.parent)
    return manifest


def read_snapshot(directory: Path) -> LoadedSnapshot:
    """Reads a snapshot after verifying sizes and SHA-256 of all its files.

    Raises:
        SnapshotUnreadableError: If the snapshot is incomplete, damaged, of another format, or holds
            links or unlisted files.
    """
    manifest = verify(directory)
    return LoadedSnapshot(manifest, read_tree(directory))


def repair_snapshots(parent: Path, names: str = "*") -> None:
    """Removes temporary directories of killed writers, and restores directories they renamed.

    Directories that a running process is writing are not changed.

    Args:
        parent: Directory of snapshots; nothing happens where there is none.
        names: Pattern of the names of snapshots.
    """
    if not parent.is_dir():
        return
    with _hold_lock(parent):
        for old in parent.glob(f"{names}{OLD}"):
            current = old.with_name(old.name.removesuffix(OLD))
            if current.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.rename(current)
        for new in {*parent.glob(f"{names}{NEW}"), *parent.glob(f"{names}.{_ANY_MARK}{NEW}")}:
            if not _is_being_written(new):
                shutil.rmtree(new, ignore_errors=True)


def check_free_space(directory: Path, needed: int) -> None:
    """Raises OSError if the disk of `directory` has less than `needed` bytes free."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        message = f"a snapshot needs about {needed >> 20} MiB, {free >> 20} MiB are free"
        raise OSError(errno.ENOSPC, message, str(directory))


@contextmanager
def _temporary_directory(target: Path) -> Iterator[Path]:
    """Makes a directory beside `target` that is locked within the body.

    The directory is removed afterwards if it still exists.
    """
    directory = target.with_name(f"{target.name}.{secrets.token_hex(4)}{NEW}")
    with _hold_lock(target.parent):
        directory.mkdir()
        descriptor = _lock(directory, fcntl.LOCK_EX)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        _unlock(descriptor)


@contextmanager
def _hold_lock(directory: Path) -> Iterator[None]:
    descriptor = _lock(directory, fcntl.LOCK_EX)
    try:
        yield
    finally:
        _unlock(descriptor)


def _is_being_written(directory: Path) -> bool:
    try:
        descriptor = _lock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    _unlock(descriptor)
    return False


def _lock(directory: Path, operation: int) -> int:
    """Returns an open descriptor of a directory that holds its lock.

    On file systems without locks it holds none.

    Raises:
        BlockingIOError: If the operation does not wait, and another process holds the lock.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(descriptor)
            raise
    return descriptor


def _unlock(descriptor: int) -> None:
    """Releases a lock at once, also where a forked process has inherited the descriptor."""
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _write(
    directory: Path,
    owner: SnapshotOwner,
    state: StateTree,
    moment: Moment,
    before: PreviousSnapshot | None,
) -> Manifest:
    write_tree(directory, state, None if before is None else before.directory)
    files = tuple(_describe(directory, name, before) for name in files_below(directory))
    clock, reason = moment.clock, moment.reason
    manifest = Manifest(
        snapshot_id=moment.snapshot_id or new_id("snp"),
        run_id=owner.run_id,
        attempt_id=owner.attempt_id,
        experiment_id=owner.experiment_id,
        definition_hash=owner.definition_hash,
        seed=owner.seed,
        parent=owner.parent,
        reason=reason,
        score=moment.score,
        resume_exact=owner.resume_exact
        and "memory" in state
        and reason is not SnapshotReason.EXCEPTION,
        scales_by_bounds=owner.scales_by_bounds,
        stop=state.get("loop", {}).get("stop"),
        env_step=clock.env_steps,
        update=clock.updates,
        episode=clock.episodes,
        epoch=clock.epochs,
        iteration=clock.iterations,
        wall=time.time(),
        versions=owner.versions,
        device=owner.device,
        files=files,
    )
    path = directory / MANIFEST
    path.write_text(manifest.model_dump_json(indent=1))
    sync_file(path)
    for inner in (one for one in directory.rglob("*") if one.is_dir()):
        sync_file(inner)
    sync_file(directory)
    return manifest


def _describe(root: Path, name: str, before: PreviousSnapshot | None) -> SnapshotFile:
    path = root / name
    if before is not None and (shared := before.find_shared_file(path, name)) is not None:
        return shared
    sync_file(path)
    try:
        return describe_file(path, root)
    except ValidationError as error:
        message = (
            f"the agent's own save wrote {name!r}: names are of letters, digits, '_', '.', '-', at "
            "most 4 levels and 128 characters"
        )
        raise TypeError(message) from error


def _put_in_place(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
        return
    old = target.with_name(target.name + OLD)
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    temporary.rename(target)
    shutil.rmtree(old, ignore_errors=True)
