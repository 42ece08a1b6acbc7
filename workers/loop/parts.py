"""What an engine is given, and what it answers."""

from dataclasses import dataclass

from workers.core.protocols import Agent, Collector, Control, Evaluator, Hook, Recorder, Snapshotter
from workers.core.types import StopReason
from workers.loop.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the engine works with. It owns none of it: who assembled the parts closes them."""

    agent: Agent
    collector: Collector
    recorder: Recorder
    snapshotter: Snapshotter
    control: Control
    evaluator: Evaluator | None = None
    hooks: tuple[Hook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """When the engine does what. Intervals are in env_steps; `None` is never."""

    budget: Budget
    epoch: int | None = None
    evaluation: int | None = None
    evaluate_during_episode: bool = True
    """Evaluate at the exact multiple; false waits for an iteration in which a training episode ended."""
    snapshot: int | None = None
    save_best: bool = True
    save_memory: bool = True


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run, or an attempt at it, ended."""

    reason: StopReason
    snapshot_id: str | None
    """The last snapshot."""
    score: float | None
    """Mean return of the last evaluation."""
