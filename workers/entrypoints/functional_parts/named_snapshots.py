"""Snapshots with the directory names of PFRL's training functions.

These are `<t>_checkpoint`, `best`, `<t>_except` and `<t>_finish`. Each is a complete snapshot with
the agent's own files at its top level. Defines the names, and which snapshot a resume reads.
"""

import logging
import shutil
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

from workers.core.errors import SnapshotUnreadableError
from workers.core.protocols import ClockView
from workers.core.types import SnapshotReason, StateTree, StopReason
from workers.snapshot.manifest import MANIFEST, Manifest, read_manifest, verify
from workers.snapshot.snapshot_directory import (
    Moment,
    SnapshotOwner,
    repair_snapshots,
    write_snapshot,
)

BEST: Final = "best"
CHECKPOINT: Final = "checkpoint"
EXCEPT: Final = "except"
FINISH: Final = "finish"
SUCCESSFUL: Final = "successful"
"""Last snapshot of an asynchronous training that reached its successful score."""
LATEST: Final = "latest"
_INTERRUPTED: Final = frozenset(
    {StopReason.DRAIN.value, StopReason.CANCEL.value, StopReason.PAUSE.value}
)


class NamedSnapshots:
    """Writes snapshots below one directory.

    Args:
        directory: Output directory; created with the first snapshot.
        owner: Run, experiment and seed that the manifests name.
        every: Interval of checkpoints in env_steps. One checkpoint is written for each multiple
            that was crossed, and named by it; `None` names checkpoints by the clock's env_steps.
        includes_last_step: Whether to also write the checkpoints whose multiples the last step
            crossed.
        keep: Number of newest checkpoints to keep; `None` keeps all.
        logger: Receives a line per snapshot.
    """

    def __init__(
        self,
        directory: Path,
        owner: SnapshotOwner,
        *,
        every: int | None = None,
        includes_last_step: bool = False,
        keep: int | None = None,
        logger: logging.Logger,
    ) -> None:
        self._directory = directory
        self._owner = owner
        self._every = every
        self._includes_last_step = includes_last_step
        self._keep = keep
        self._logger = logger
        self._checked_at = 0
        self._written: list[Path] = []

    def begin(self, env_steps: int) -> None:
        """Sets the env_step at which training begins: checkpoints are due at later multiples."""
        self._checked_at = env_steps

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes a complete snapshot and returns its name; see `Snapshotter.save`."""
        t = clock.env_steps
        moment = Moment(clock=clock, reason=reason, score=score)
        if reason is SnapshotReason.PERIODIC:
            return self._write_checkpoints(state, moment, self._multiples(t) or [t])
        if reason is SnapshotReason.FINISH and self._includes_last_step:
            self._write_checkpoints(
                state, Moment(clock=clock, reason=SnapshotReason.PERIODIC), self._multiples(t)
            )
        return self._write(_name(reason, t, state), state, moment)

    def _multiples(self, t: int) -> list[int]:
        if self._every is None:
            return []
        first = self._checked_at // self._every + 1
        self._checked_at = t
        return [number * self._every for number in range(first, t // self._every + 1)]

    def _write_checkpoints(self, state: StateTree, moment: Moment, multiples: list[int]) -> str:
        names = [self._write(f"{multiple}_{CHECKPOINT}", state, moment) for multiple in multiples]
        self._written += [
            self._directory / name for name in names if self._directory / name not in self._written
        ]
        if self._keep is not None:
            for old in self._written[: -self._keep]:
                shutil.rmtree(old, ignore_errors=True)
            del self._written[: -self._keep]
        return names[-1] if names else ""

    def _write(self, name: str, state: StateTree, moment: Moment) -> str:
        self._directory.mkdir(parents=True, exist_ok=True)
        write_snapshot(self._directory / name, self._owner, state, moment)
        self._logger.info("saved the agent to %s", self._directory / name)
        return name


def find_snapshot(directory: Path, resume: str) -> Path | None:
    """Returns the snapshot to resume from, after repairing snapshots of a killed writer.

    Args:
        directory: Directory in which `latest` searches.
        resume: `latest`, or the path of a snapshot.

    Returns:
        The given path, or for `latest` the complete snapshot with the most env_steps of the newest
            training; `None` if the directory has no snapshot.

    Raises:
        FileNotFoundError: If the path is not a directory.
        SnapshotUnreadableError: If there are snapshots, but none is complete.
    """
    if resume != LATEST:
        path = Path(resume)
        repair_snapshots(path.parent, escape(path.name))
        if not path.is_dir():
            raise FileNotFoundError(
                f"resume: {path} is not a directory; give '{LATEST}' or the path of a snapshot"
            )
        return path
    repair_named_snapshots(directory)
    found = [path.parent for path in directory.glob(f"*/{MANIFEST}")]
    failure: SnapshotUnreadableError | None = None
    for path in _sort_newest_first(found):
        try:
            verify(path)
        except SnapshotUnreadableError as error:
            failure = failure or error
            continue
        return path
    if failure is not None:
        raise failure
    return None


def repair_named_snapshots(directory: Path) -> None:
    """Repairs snapshots that a killed writer has left incomplete; changes no other files."""
    for names in (BEST, SUCCESSFUL, *(f"[0-9]*_{kind}" for kind in (CHECKPOINT, EXCEPT, FINISH))):
        repair_snapshots(directory, names)


def _sort_newest_first(paths: list[Path]) -> list[Path]:
    """Sorts snapshots by training, the newest training first, and then by descending env_steps.

    Snapshots whose manifest cannot be read are last.
    """
    manifests: dict[Path, Manifest] = {}
    for path in paths:
        with suppress(SnapshotUnreadableError):
            manifests[path] = read_manifest(path)
    newest: dict[str, float] = {}
    for one in manifests.values():
        newest[one.run_id] = max(one.wall, newest.get(one.run_id, 0.0))

    def age(path: Path) -> tuple[float, int, float]:
        one = manifests[path]
        return (newest[one.run_id], one.env_step, one.wall)

    return sorted(manifests, key=age, reverse=True) + [
        path for path in paths if path not in manifests
    ]


def _name(reason: SnapshotReason, t: int, state: StateTree) -> str:
    match reason:
        case SnapshotReason.BEST:
            return BEST
        case SnapshotReason.EXCEPTION:
            return f"{t}_{EXCEPT}"
        case SnapshotReason.STOP:
            stopped_by = state.get("loop", {}).get("stop")
            return f"{t}_{EXCEPT if stopped_by in _INTERRUPTED else FINISH}"
        case _:
            return f"{t}_{FINISH}"
