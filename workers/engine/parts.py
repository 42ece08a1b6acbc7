"""What an engine is given, and what it answers."""

import math
from dataclasses import dataclass, field
from typing import Protocol

from workers.core.protocols import (
    ClockView,
    Collector,
    Control,
    Evaluator,
    Hook,
    Recorder,
    Snapshotter,
    TrainableAgent,
    Trigger,
)
from workers.core.types import StopReason, Unit
from workers.engine.clock import Clock


class Best:
    """The best mean evaluation return so far. Engines in several processes share one."""

    def __init__(self) -> None:
        self.score: float | None = None

    def improved(self, score: float) -> bool:
        """Takes a score over if it strictly exceeds the best, and returns whether it did.

        One that is not a number never does.
        """
        if not score > (-math.inf if self.score is None else self.score):
            return False
        self.score = score
        return True


class StopBudget(Protocol):
    """What ends a run: `workers.engine.budget.Budget`, or one that several processes share."""

    @property
    def quiet_until(self) -> int:
        """env_steps below which no bound is reached; 0 to be asked always.

        `exhausted` is therefore asked only where something else is due.
        """

    def exhausted(self, clock: ClockView) -> bool:
        """Returns whether a bound is reached."""

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns how much of `unit` is left, at least 0.

        A very large number without a bound on it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the engine works with. It owns none of it: who assembled the parts closes them."""

    agent: TrainableAgent
    collector: Collector
    recorder: Recorder
    snapshotter: Snapshotter
    control: Control
    evaluator: Evaluator | None = None
    hooks: tuple[Hook, ...] = ()
    best: Best = field(default_factory=Best)
    clock: Clock | None = None
    """Counts for engines in several processes; `None` takes one of the engine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """When the engine does what.

    Intervals are in env_steps, or triggers of any unit; `None` is never.
    """

    budget: StopBudget
    epoch: int | Trigger | None = None
    evaluation: int | Trigger | None = None
    evaluate_during_episode: bool = True
    """Evaluate at the exact multiple.

    False waits for an iteration in which a training episode ended.
    """
    final_evaluation: bool = True
    """Evaluate once at the end of the run; false where another process does."""
    snapshot: int | Trigger | None = None
    save_best: bool = True
    best_apart: bool = False
    """Write each kind of snapshot that is due, also where another one holds the same state: each
    has a name of its own.
    """
    save_memory: bool = True


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run, or an attempt at it, ended."""

    reason: StopReason
    snapshot_id: str | None
    """The last snapshot."""
    score: float | None
    """Mean return of the last evaluation."""
