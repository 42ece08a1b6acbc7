"""Snapshots under the names that PFRL's training functions give.

These are `<t>_checkpoint`, `best`, `<t>_except` and `<t>_finish`. Each is a complete snapshot with
the agent's own files at its top. Owns the names, and which snapshot a resume reads.
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
from workers.snapshot.snapshot_directory import Moment, SnapshotOwner, settle, write_snapshot

BEST: Final = "best"
CHECKPOINT: Final = "checkpoint"
EXCEPT: Final = "except"
FINISH: Final = "finish"
SUCCESSFUL: Final = "successful"
"""Of an asynchronous training that reached its score."""
LATEST: Final = "latest"
_BROKEN_OFF: Final = frozenset(
    {StopReason.DRAIN.value, StopReason.CANCEL.value, StopReason.PAUSE.value}
)


class NamedSnapshots:
    """Writes snapshots below one directory.

    Args:
        directory: Created, if need be, with the first of them.
        owner: What they say about themselves.
        every: A checkpoint is named by the multiple of this that was crossed, one for each; `None`
            takes the clock.
        also_at_end: Write the checkpoints that are due with the last step, too.
        keep: Newest checkpoints kept; `None` keeps all.
        logger: Told of each.
    """

    def __init__(
        self,
        directory: Path,
        owner: SnapshotOwner,
        *,
        every: int | None = None,
        also_at_end: bool = False,
        keep: int | None = None,
        logger: logging.Logger,
    ) -> None:
        self._directory = directory
        self._owner = owner
        self._every = every
        self._also_at_end = also_at_end
        self._keep = keep
        self._logger = logger
        self._checked_at = 0
        self._written: list[Path] = []

    def begin(self, env_steps: int) -> None:
        """Says where training begins: multiples up to there are not due."""
        self._checked_at = env_steps

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes one complete snapshot under its name; see the protocol."""
        t = clock.env_steps
        moment = Moment(clock=clock, reason=reason, score=score)
        if reason is SnapshotReason.PERIODIC:
            return self._write_checkpoints(state, moment, self._multiples(t) or [t])
        if reason is SnapshotReason.FINISH and self._also_at_end:
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
    """Returns the snapshot to resume from, after repairing what a killed writer may have left.

    Args:
        directory: Where `latest` looks.
        resume: `latest`, or the path of a snapshot.

    Returns:
        Of `latest`, the whole one with the most env_steps of the newest training; `None` where
            there is none at all.

    Raises:
        FileNotFoundError: If the path is no directory.
        SnapshotUnreadableError: If all that are there are torn.
    """
    if resume != LATEST:
        path = Path(resume)
        settle(path.parent, escape(path.name))
        if not path.is_dir():
            raise FileNotFoundError(
                f"resume: {path} is not a directory; give '{LATEST}' or the path of a snapshot"
            )
        return path
    settle_named(directory)
    found = [path.parent for path in directory.glob(f"*/{MANIFEST}")]
    failure: SnapshotUnreadableError | None = None
    for path in _newest_first(found):
        try:
            verify(path)
        except SnapshotUnreadableError as error:
            failure = failure or error
            continue
        return path
    if failure is not None:
        raise failure
    return None


def settle_named(directory: Path) -> None:
    """Repairs what a killed writer may have left, and touches nothing else."""
    for names in (BEST, SUCCESSFUL, *(f"[0-9]*_{kind}" for kind in (CHECKPOINT, EXCEPT, FINISH))):
        settle(directory, names)


def _newest_first(paths: list[Path]) -> list[Path]:
    """Returns snapshots by training, the newest first, and then by env_steps.

    Those without a manifest that can be read come last.
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
            return f"{t}_{EXCEPT if stopped_by in _BROKEN_OFF else FINISH}"
        case _:
            return f"{t}_{FINISH}"
