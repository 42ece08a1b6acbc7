"""The arguments and the result of an engine."""

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


class BestScore:
    """The best mean evaluation return so far. Engines in several processes may share one."""

    def __init__(self) -> None:
        self.score: float | None = None

    def store_if_better(self, score: float) -> bool:
        """Stores a score if it strictly exceeds the best; returns whether it was stored.

        NaN never exceeds the best.
        """
        if not score > (-math.inf if self.score is None else self.score):
            return False
        self.score = score
        return True


class StopBudget(Protocol):
    """The budget of a run: `workers.engine.budget.Budget`, or one shared by several processes."""

    @property
    def quiet_until(self) -> int:
        """The number of env_steps before which no bound is reached; 0 to always check.

        Before it, `is_exhausted` is called only if another event is due.
        """

    def is_exhausted(self, clock: ClockView) -> bool:
        """Returns whether a bound is reached."""

    def room(self, clock: ClockView, unit: Unit) -> int:
        """Returns the remaining amount of `unit`, at least 0.

        A very large number if `unit` has no bound.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that an engine uses. The caller who built them closes them."""

    agent: TrainableAgent
    collector: Collector
    recorder: Recorder
    snapshotter: Snapshotter
    control: Control
    evaluator: Evaluator | None = None
    hooks: tuple[Hook, ...] = ()
    best: BestScore = field(default_factory=BestScore)
    clock: Clock | None = None
    """A clock that engines in several processes share; `None` creates one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """When the engine closes epochs, evaluates, saves and ends.

    Intervals are numbers of env_steps, or triggers of any unit; `None` means never.
    """

    budget: StopBudget
    epoch: int | Trigger | None = None
    evaluation: int | Trigger | None = None
    evaluates_during_episode: bool = True
    """Evaluate at the exact multiple.

    False waits for an iteration in which a training episode ended.
    """
    has_final_evaluation: bool = True
    """Evaluate once at the end of the run; false if another process does."""
    saves_before_final_evaluation: bool = False
    """Save a periodic snapshot before it, so that the training is not lost if it never ends."""
    snapshot: int | Trigger | None = None
    saves_best: bool = True
    saves_best_separately: bool = False
    """Write each kind of due snapshot under its own name, even if another holds the same state."""
    saves_memory: bool = True


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of `Engine.run`."""

    reason: StopReason
    snapshot_id: str | None
    """ID of the last snapshot; `None` if none was saved."""
    score: float | None
    """Mean return of the last evaluation."""
    message: str | None = None
    """What the user sees of a failure, if the hook that requested the stop explained it."""
