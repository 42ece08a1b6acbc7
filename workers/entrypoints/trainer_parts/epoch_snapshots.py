"""Snapshots of epochs under fixed names, and the rule by which one of them is found again."""

from pathlib import Path

from workers.core.counts import is_count
from workers.core.types import SnapshotReason, StateTree
from workers.snapshot.config import EXCEPTION, PARAMS, SnapshotConfig, epoch_of
from workers.snapshot.manifest import MANIFEST, read_manifest
from workers.snapshot.snapshot_directory import Moment, SnapshotOwner, settle, write_snapshot


class EpochSnapshots:
    """Writes the snapshots of one directory.

    Args:
        config: Where, and which epochs.
    """

    def __init__(self, config: SnapshotConfig) -> None:
        self.config = config

    def open(self) -> None:
        """Makes the directory, and repairs what a killed writer left in it."""
        self.config.directory.mkdir(parents=True, exist_ok=True)
        settle(self.config.directory)

    def write(
        self, owner: SnapshotOwner, state: StateTree, epoch: int, moment: Moment
    ) -> str | None:
        """Writes the state after an epoch, or that which an exception left.

        Returns:
            The id of the last snapshot written; `None` where the mode keeps none here.

        Raises:
            TypeError: If the state holds what cannot be saved.
            OSError: If the disk is full or fails; what was there before is as it was.
        """
        written: str | None = None
        for name in self._names(epoch, moment.reason):
            self.config.directory.mkdir(parents=True, exist_ok=True)
            written = write_snapshot(self.config.directory / name, owner, state, moment).snapshot_id
        return written

    def _names(self, epoch: int, reason: SnapshotReason) -> tuple[str, ...]:
        if reason is SnapshotReason.EXCEPTION:
            return () if self.config.snapshot_mode == "none" else (EXCEPTION,)
        return self.config.names(epoch, always=reason is SnapshotReason.STOP)


def find_snapshot(directory: Path, which: str | int = "last") -> Path:
    """Returns the snapshot of an epoch.

    Args:
        directory: Where the snapshots of a training lie, or one snapshot itself.
        which: `last`, `first`, `exception`, or the index of an epoch as a number or in digits.
            Epochs are ordered as numbers.

    Raises:
        ValueError: If `which` is anything else.
        FileNotFoundError: If there is no such snapshot; the message names those that there are.
    """
    wanted = _wanted(which)
    if (directory / MANIFEST).is_file():
        return directory
    if not directory.is_dir():
        raise FileNotFoundError(
            f"{directory} is no directory: give the snapshot_dir of an earlier training"
        )
    settle(directory)
    if wanted == EXCEPTION:
        return _existing(directory, directory / EXCEPTION)
    found = snapshots_by_epoch(directory)
    if not found:
        raise FileNotFoundError(
            f"{directory} holds no snapshot: there is neither {PARAMS} nor any itr_<epoch> in it"
        )
    epoch = {"last": max(found), "first": min(found)}.get(str(wanted), wanted)
    if epoch not in found:
        have = ", ".join(map(str, sorted(found)))
        raise FileNotFoundError(
            f"{directory} holds no snapshot of epoch {epoch}; it has those of {have}"
        )
    return found[int(epoch)]


def snapshots_by_epoch(directory: Path) -> dict[int, Path]:
    """Returns the snapshots below a directory by epoch.

    Other files and directories do not matter.
    """
    found = {
        number: one
        for one in directory.iterdir()
        if (number := epoch_of(one.name)) is not None and (one / MANIFEST).is_file()
    }
    params = directory / PARAMS
    if (params / MANIFEST).is_file():
        found.setdefault(max(0, read_manifest(params).epoch - 1), params)
    return found


def _wanted(which: str | int) -> str | int:
    if is_count(which, 0):
        return int(which)
    if isinstance(which, str):
        if which in {"last", "first", EXCEPTION}:
            return which
        if which.isascii() and which.isdigit():
            return int(which)
    raise ValueError(
        f"from_epoch must be 'last', 'first', 'exception' or the number of an epoch, not {which!r}"
    )


def _existing(directory: Path, snapshot: Path) -> Path:
    if not (snapshot / MANIFEST).is_file():
        raise FileNotFoundError(
            f"{directory} holds no {snapshot.name}: no exception ended its training"
        )
    return snapshot
