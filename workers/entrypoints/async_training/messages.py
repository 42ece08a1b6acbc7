"""What a training process tells its parent."""

from typing import NamedTuple

from workers.core.types import EpisodeEnd, EvaluationResult, SnapshotReason
from workers.engine.clock import StillClock


class EpisodesEnded(NamedTuple):
    """Said to the parent: training episodes."""

    clock: StillClock
    episodes: tuple[tuple[int, EpisodeEnd], ...]
    agent_statistics: tuple[tuple[str, object], ...]
    """The agent's, of process 0 alone."""


class Evaluated(NamedTuple):
    """Said to the parent: an evaluation."""

    clock: StillClock
    result: EvaluationResult
    agent_statistics: tuple[tuple[str, object], ...]
    env_statistics: tuple[tuple[str, object], ...]


class Saved(NamedTuple):
    """Said to the parent: a snapshot."""

    name: str
    reason: SnapshotReason
