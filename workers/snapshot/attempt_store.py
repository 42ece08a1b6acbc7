"""The snapshots of one attempt: writes them, deletes old ones, and reports them.

An old snapshot is deleted only after the newest one was verified.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from palestra.contract.names import new_id
from palestra.contract.retention import is_replaced
from palestra.contract.telemetry import SnapshotFile, SnapshotWritten
from workers.core.errors import SnapshotUnreadableError
from workers.core.protocols import ClockView
from workers.core.types import SnapshotReason, StateTree
from workers.snapshot.manifest import FORMAT_VERSION, MANIFEST, Manifest, describe_file, verify
from workers.snapshot.snapshot_directory import (
    LoadedSnapshot,
    Moment,
    PreviousSnapshot,
    SnapshotOwner,
    check_free_space,
    read_snapshot,
    write_snapshot,
)

_ROOM: Final = 1.2
"""Free space required before a snapshot is written, as a multiple of the last one's size."""


class SnapshotStore:
    """The snapshots of one attempt.

    Args:
        directory: Directory of the snapshots; created if it does not exist.
        owner: Run, attempt and versions that the manifests name.
        keep_last: Number of newest snapshots to keep, at least 2, in addition to the best one. That
            before the final evaluation is none of them once the final one is complete.
        announce: Called with a record of each complete snapshot.
    """

    def __init__(
        self,
        directory: Path,
        owner: SnapshotOwner,
        *,
        keep_last: int = 2,
        announce: Callable[[SnapshotWritten], None],
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._owner = owner
        self._keep_last = max(2, keep_last)
        self._announce = announce
        self._written: list[str] = []
        self._replaced: set[str] = set()
        """IDs of snapshots that a newer one of the same state replaces."""
        self._best: tuple[float, str] | None = None
        self._last_size = 0
        """Bytes of the last snapshot, without files shared with the snapshot before it."""
        self._last: PreviousSnapshot | None = None
        self._checked: set[str] = set()
        """Names of files of the last snapshot that were verified, in it or in an earlier one."""

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes a complete snapshot and returns its ID; see `Snapshotter.save`."""
        check_free_space(self._directory, int(self._last_size * _ROOM))
        snapshot_id = new_id("snp")
        target = self._directory / snapshot_id
        moment = Moment(clock=clock, reason=reason, score=score, snapshot_id=snapshot_id)
        manifest = write_snapshot(target, self._owner, state, moment, self._last)
        self._remember(target, manifest)
        self._announce(_record(manifest, describe_file(target / MANIFEST, target)))
        self._delete_old()
        return snapshot_id

    def _remember(self, target: Path, manifest: Manifest) -> None:
        before = self._last
        shared = {
            file.name
            for file in manifest.files
            if before is not None and before.find_shared_file(target / file.name, file.name)
        }
        if before is not None and is_replaced(before.manifest, manifest):
            self._replaced.add(before.manifest.snapshot_id)
        self._last = PreviousSnapshot(target, manifest)
        self._checked &= shared
        self._written.append(manifest.snapshot_id)
        self._last_size = sum(file.size for file in manifest.files if file.name not in shared)
        if manifest.score is not None and (self._best is None or manifest.score > self._best[0]):
            self._best = (manifest.score, manifest.snapshot_id)

    def _delete_old(self) -> None:
        """Deletes the snapshots that need not be kept, if the newest one can be verified.

        The supervisor then uploads the newer ones instead.
        """
        different = [one for one in self._written if one not in self._replaced]
        kept = set(different[-self._keep_last :]) | ({self._best[1]} if self._best else set())
        unneeded = [one for one in self._written if one not in kept]
        if unneeded and self._is_last_complete():
            for snapshot_id in unneeded:
                self._written.remove(snapshot_id)
                shutil.rmtree(self._directory / snapshot_id, ignore_errors=True)

    def _is_last_complete(self) -> bool:
        assert self._last is not None
        try:
            self._checked = {
                file.name for file in verify(self._last.directory, self._checked).files
            }
        except SnapshotUnreadableError:
            return False
        return True


def load_snapshot(directory: Path, *, run_id: str | None, definition_hash: str) -> LoadedSnapshot:
    """Reads a snapshot after verifying sizes and SHA-256 of all its files.

    Args:
        directory: Directory of the snapshot.
        run_id: ID of the run that the snapshot must belong to; `None` for any.
        definition_hash: Hash of the definition that the snapshot must belong to.

    Raises:
        SnapshotUnreadableError: If the snapshot is incomplete, damaged, of another run or
            definition, of a newer format, or holds links or unlisted files.
    """
    loaded = read_snapshot(directory)
    manifest = loaded.manifest
    if manifest.snapshot_id != directory.name:
        raise SnapshotUnreadableError(
            f"{directory.name}: the manifest is that of {manifest.snapshot_id}"
        )
    if run_id is not None and manifest.run_id != run_id:
        raise SnapshotUnreadableError(
            f"{directory.name}: belongs to {manifest.run_id}, not to {run_id}"
        )
    if manifest.definition_hash != definition_hash:
        raise SnapshotUnreadableError(
            f"{directory.name}: was made by another definition, so its state does not fit"
        )
    return loaded


def _record(manifest: Manifest, manifest_file: SnapshotFile) -> SnapshotWritten:
    return SnapshotWritten(
        run=manifest.run_id,
        snapshot_id=manifest.snapshot_id,
        reason=manifest.reason,
        env_step=manifest.env_step,
        update=manifest.update,
        episode=manifest.episode,
        wall=manifest.wall,
        format_version=FORMAT_VERSION,
        resume_exact=manifest.resume_exact,
        score=manifest.score,
        files=(*manifest.files, manifest_file),
    )
