"""The checkpoints of a model directory.

A checkpoint is a snapshot called `ckpt-<global_step>`; the newest ones are kept. The snapshot after
an exception or a divergence is called `failed-<global_step>`: only the last one is kept, for
inspection, and it is never resumed from.
"""

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import torch

from workers.core.errors import SnapshotUnreadableError
from workers.core.protocols import ClockView, Snapshotter
from workers.core.types import SnapshotReason, StateTree, StopReason
from workers.estimators.run_config import RunConfig
from workers.snapshot.manifest import read_manifest
from workers.snapshot.owner import snapshot_owner
from workers.snapshot.snapshot_directory import (
    LoadedSnapshot,
    Moment,
    SnapshotOwner,
    read_snapshot,
    repair_snapshots,
    write_snapshot,
)

PREFIX: Final = "ckpt-"
FAILED: Final = "failed-"
READS: Final = 5
"""Number of attempts to read the newest checkpoint, which another process may replace."""

_log = structlog.get_logger()
_NAME: Final = re.compile(r"^ckpt-(\d+)$")


class CheckpointKey(NamedTuple):
    """Counters that identify a state of one model directory.

    Two checkpoints with the same key hold the same state.
    """

    global_step: int
    global_timestep: int
    global_episode: int


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Writes and keeps the checkpoints of one training process.

    Raises:
        OSError: If the disk is full or fails.
    """

    model_dir: Path
    owner: SnapshotOwner
    keep_max: int | None
    on_saved: Callable[[Path], None] = lambda _: None
    """Called with the path of each checkpoint that can be resumed from."""

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes a checkpoint, which replaces one of the same global_step.

        See `workers.core.protocols.Snapshotter`.
        """
        self.model_dir.mkdir(parents=True, exist_ok=True)
        has_failed = reason is SnapshotReason.EXCEPTION
        if has_failed:
            _remove(self.model_dir.glob(f"{FAILED}*"))
        target = self.model_dir / f"{FAILED if has_failed else PREFIX}{clock.updates}"
        manifest = write_snapshot(
            target, self.owner, state, Moment(clock=clock, reason=reason, score=score)
        )
        if not has_failed:
            _remove(
                list(all_checkpoints(self.model_dir).values())[: -self.keep_max]
                if self.keep_max
                else []
            )
            self.on_saved(target)
        return manifest.snapshot_id


class NoCheckpoints:
    """A `Snapshotter` that writes nothing.

    Used if the configuration disables checkpoints, and by processes that are not the chief.
    """

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Returns empty text and writes nothing."""
        del state, clock, reason, score
        return ""


def make_saver(
    config: RunConfig,
    model_dir: Path,
    model_function: str,
    on_saved: Callable[[Path], None],
) -> Snapshotter:
    """Returns the snapshotter of a training.

    Args:
        config: Defines whether checkpoints are written, and how many are kept.
        model_dir: Directory of the checkpoints; created with the first one.
        model_function: Name of the model function, which is stored in the manifest.
        on_saved: Called with the path of each checkpoint that can be resumed from.
    """
    if not (config.saves_checkpoints and config.is_chief):
        return NoCheckpoints()
    if model_dir.exists():
        repair_snapshots(model_dir)
    owner = snapshot_owner(
        experiment_id=model_dir.name,
        definition_hash=model_function,
        seed=config.seed,
        device=torch.device(config.device).type,
    )
    return Checkpoints(model_dir, owner, config.keep_checkpoint_max or None, on_saved)


def all_checkpoints(model_dir: str | Path) -> dict[int, Path]:
    """Returns the paths of all checkpoints by global_step, in ascending order."""
    found = {
        int(match[1]): path
        for path in Path(model_dir).glob(f"{PREFIX}*")
        if (match := _NAME.match(path.name))
    }
    return dict(sorted(found.items()))


def latest_checkpoint(model_dir: str | Path) -> Path | None:
    """Returns the path of the checkpoint with the greatest global_step; `None` without any."""
    return next(reversed(all_checkpoints(model_dir).values()), None)


def key_of(checkpoint: Path) -> CheckpointKey:
    """Returns the counters of a checkpoint.

    Raises:
        SnapshotUnreadableError: If the checkpoint was removed or is damaged.
    """
    manifest = read_manifest(checkpoint)
    return CheckpointKey(manifest.update, manifest.env_step, manifest.episode)


def load_checkpoint(model_dir: str | Path, path: str | Path | None = None) -> LoadedSnapshot | None:
    """Reads and verifies the checkpoint at `path`, or the newest one if `path` is `None`.

    Returns `None` if the directory has no checkpoint.

    Raises:
        SnapshotUnreadableError: If the checkpoint is damaged.
    """
    if path is not None:
        return read_snapshot(Path(path))
    for attempt in range(READS):
        newest = latest_checkpoint(model_dir)
        if newest is None:
            return None
        try:
            return read_snapshot(newest)
        except (SnapshotUnreadableError, OSError):
            if attempt == READS - 1:
                raise
    return None


def has_training_ended(model_dir: str | Path) -> bool:
    """Returns whether the training that wrote the newest checkpoint is over.

    A training is over if its budget was used up, its input ended, a stop was requested, or it
    diverged. It is not over if it was paused or killed, or ended after a number of further steps
    (`steps` or `episodes` of a `train` call).
    """
    newest = latest_checkpoint(model_dir)
    candidates = [*Path(model_dir).glob(f"{FAILED}*"), *([newest] if newest else [])]
    stops = (_stop_of(path) for path in candidates)
    return any(
        stop is StopReason.DIVERGED or (stop is not None and stop.completes_run) for stop in stops
    )


def _stop_of(checkpoint: Path) -> StopReason | None:
    try:
        stop = read_manifest(checkpoint).stop
    except SnapshotUnreadableError:
        return None
    return StopReason(stop) if stop else None


def _remove(directories: Iterable[Path]) -> None:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
        _log.debug("estimator.checkpoint_removed", checkpoint=directory.name)
