"""Messages between the processes of an asynchronous training and their parent."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from workers.core.types import EpisodeEnd, EvaluationResult, SnapshotReason
from workers.engine.clock import StillClock
from workers.entrypoints.async_training.shared_block import SharedBlock
from workers.entrypoints.async_training.spawn_pickling import PickledValue
from workers.entrypoints.functional_parts.evaluator import EvaluationSettings
from workers.rl.agents.shared_tensors import SharedTensors
from workers.snapshot.snapshot_directory import SnapshotOwner


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSettings:
    """Settings that all processes share."""

    outdir: Path
    steps: int
    evaluation: EvaluationSettings | None
    max_episode_len: int | None
    successful_score: float | None
    saves_best: bool
    profile: bool
    save_memory: bool


class UserParts(NamedTuple):
    """Functions and objects that the caller passed to `train_agent_async`."""

    make_env: Callable[..., object]
    make_agent: Callable[[int], object] | None
    agent: object
    """`None` if each process makes its agent with `make_agent`."""
    tensors: SharedTensors
    step_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[object, ...]
    stop_event: Any
    """`None` if there is no event, or if the parent polls it for all processes."""


@dataclass(frozen=True, slots=True)
class ProcessTask:
    """Arguments of one process, sent by its parent when the process starts."""

    settings: AsyncSettings
    owner: SnapshotOwner
    resume: Path | None
    """Path of the snapshot from which to resume."""
    seed: int
    block: SharedBlock
    writing: SharedBlock
    """Only its lock is used: a process holds it while it writes the snapshot of the best agent."""
    user: PickledValue
    """Contains the `UserParts`."""


class EpisodesMessage(NamedTuple):
    """Training episodes that ended, sent to the parent."""

    clock: StillClock
    episodes: tuple[tuple[int, EpisodeEnd], ...]
    agent_statistics: tuple[tuple[str, object], ...]
    """Sent by process 0; empty from the other processes."""


class EvaluationMessage(NamedTuple):
    """An evaluation, sent to the parent."""

    clock: StillClock
    result: EvaluationResult
    agent_statistics: tuple[tuple[str, object], ...]
    env_statistics: tuple[tuple[str, object], ...]


class SnapshotMessage(NamedTuple):
    """A snapshot that was written, sent to the parent."""

    name: str
    reason: SnapshotReason
