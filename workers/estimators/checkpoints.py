"""The checkpoints of a model directory.

A checkpoint is a snapshot called `ckpt-<global_step>`; the newest are kept.

After an exception or a divergence it is called `failed-<global_step>`: one is kept to be inspected,
and is never resumed.
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
    settle,
    write_snapshot,
)

PREFIX: Final = "ckpt-"
FAILED: Final = "failed-"
READS: Final = 5
"""Times that the newest checkpoint is looked up again when another process replaces it meanwhile.
"""

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
    """Told of each checkpoint that can be resumed from."""

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes one checkpoint, in place of one of the same global_step.

        See `workers.core.protocols.Snapshotter`.
        """
        self.model_dir.mkdir(parents=True, exist_ok=True)
        failed = reason is SnapshotReason.EXCEPTION
        if failed:
            _remove(self.model_dir.glob(f"{FAILED}*"))
        target = self.model_dir / f"{FAILED if failed else PREFIX}{clock.updates}"
        manifest = write_snapshot(
            target, self.owner, state, Moment(clock=clock, reason=reason, score=score)
        )
        if not failed:
            _remove(
                list(all_checkpoints(self.model_dir).values())[: -self.keep_max]
                if self.keep_max
                else []
            )
            self.on_saved(target)
        return manifest.snapshot_id


class NoCheckpoints:
    """Writes nothing.

    Used if the configuration disables checkpoints, and by workers that are not the chief.
    """

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Does nothing."""
        del state, clock, reason, score
        return ""


def make_saver(
    config: RunConfig,
    model_dir: Path,
    model_function: str,
    on_saved: Callable[[Path], None],
) -> Snapshotter:
    """Returns what writes the checkpoints of a training.

    Args:
        config: Says whether, and how many are kept.
        model_dir: Created with the first one.
        model_function: Its name, which a checkpoint holds.
        on_saved: Told of each checkpoint that can be resumed from.
    """
    if not (config.saves_checkpoints and config.is_chief):
        return NoCheckpoints()
    if model_dir.exists():
        settle(model_dir)
    owner = snapshot_owner(
        experiment_id=model_dir.name,
        definition_hash=model_function,
        seed=config.seed,
        device=torch.device(config.device).type,
    )
    return Checkpoints(model_dir, owner, config.keep_checkpoint_max or None, on_saved)


def all_checkpoints(model_dir: str | Path) -> dict[int, Path]:
    """Returns the checkpoints by global_step, ascending."""
    found = {
        int(match[1]): path
        for path in Path(model_dir).glob(f"{PREFIX}*")
        if (match := _NAME.match(path.name))
    }
    return dict(sorted(found.items()))


def latest_checkpoint(model_dir: str | Path) -> Path | None:
    """Returns the checkpoint of the greatest global_step, `None` where there is none."""
    return next(reversed(all_checkpoints(model_dir).values()), None)


def key_of(checkpoint: Path) -> CheckpointKey:
    """Returns the counters of a checkpoint.

    Raises:
        SnapshotUnreadableError: If it is not there any more, or damaged.
    """
    manifest = read_manifest(checkpoint)
    return CheckpointKey(manifest.update, manifest.env_step, manifest.episode)


def load_checkpoint(model_dir: str | Path, path: str | Path | None = None) -> LoadedSnapshot | None:
    """Returns a verified checkpoint, the newest one where none is named.

    `None` where there is none.

    Raises:
        SnapshotUnreadableError: If it is damaged.
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


def training_ended(model_dir: str | Path) -> bool:
    """Returns whether the training that wrote the newest checkpoint is over.

    A training is over after its budget, its input, a request to stop, or divergence.

    A training that was asked for so many more steps is not over, nor one that was paused or killed.
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
