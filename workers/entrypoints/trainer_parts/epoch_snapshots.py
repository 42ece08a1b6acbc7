"""Snapshots of epochs with fixed directory names, and the search for the one to restore."""

from pathlib import Path

from workers.core.counts import is_count
from workers.core.types import SnapshotReason, StateTree
from workers.snapshot.config import EXCEPTION, PARAMS, SnapshotConfig, epoch_of
from workers.snapshot.manifest import MANIFEST, read_manifest
from workers.snapshot.snapshot_directory import (
    Moment,
    SnapshotOwner,
    repair_snapshots,
    write_snapshot,
)


def open_directory(directory: Path) -> None:
    """Creates the directory of the snapshots, and repairs snapshots that a killed writer left."""
    directory.mkdir(parents=True, exist_ok=True)
    repair_snapshots(directory)


def write_epoch(
    config: SnapshotConfig, owner: SnapshotOwner, state: StateTree, epoch: int, moment: Moment
) -> str:
    """Writes the state after an epoch, or the state at which an exception ended the training.

    Returns:
        The ID of the last snapshot written; empty text if the snapshot mode keeps none here.

    Raises:
        TypeError: If the state holds a value that cannot be saved.
        OSError: If the disk is full or fails; existing snapshots are not changed.
    """
    if moment.reason is SnapshotReason.EXCEPTION:
        names: tuple[str, ...] = () if config.snapshot_mode == "none" else (EXCEPTION,)
    else:
        names = config.names(epoch, ignores_gap=moment.reason is SnapshotReason.STOP)
    written = ""
    for name in names:
        config.directory.mkdir(parents=True, exist_ok=True)
        written = write_snapshot(config.directory / name, owner, state, moment).snapshot_id
    return written


def find_snapshot(directory: Path, which: str | int = "last") -> Path:
    """Returns the snapshot of an epoch.

    Args:
        directory: Directory of the snapshots of a training, or a snapshot itself.
        which: `last`, `first`, `exception`, or the index of an epoch as a number or as digits.
            Epochs are ordered numerically.

    Raises:
        ValueError: If `which` has another value.
        FileNotFoundError: If there is no such snapshot; the message lists the existing epochs.
    """
    wanted = _parse_epoch(which)
    if (directory / MANIFEST).is_file():
        return directory
    if not directory.is_dir():
        raise FileNotFoundError(
            f"{directory} is no directory: give the snapshot_dir of an earlier training"
        )
    repair_snapshots(directory)
    if wanted == EXCEPTION:
        if not (directory / EXCEPTION / MANIFEST).is_file():
            raise FileNotFoundError(
                f"{directory} holds no {EXCEPTION}: no exception ended its training"
            )
        return directory / EXCEPTION
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
    """Returns the snapshots in a directory by epoch; other files and directories are ignored."""
    found = {
        number: one
        for one in directory.iterdir()
        if (number := epoch_of(one.name)) is not None and (one / MANIFEST).is_file()
    }
    params = directory / PARAMS
    if (params / MANIFEST).is_file():
        found.setdefault(max(0, read_manifest(params).epoch - 1), params)
    return found


def _parse_epoch(which: str | int) -> str | int:
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
