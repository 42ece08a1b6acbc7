"""Derives the cadence of a job from a definition's cadence and the schedule. Pure functions."""

import copy
from dataclasses import replace
from typing import Final

from palestra.contract.names import Schedule
from workers.core.protocols import Trigger
from workers.core.types import Unit
from workers.engine.budget import Budget
from workers.engine.parts import Cadence, StopBudget
from workers.engine.triggers import IntervalTrigger

_ROUNDS: Final = 10
"""Number of rounds of a budget if the definition has no periodic evaluation."""
_UNBOUNDED_ROUND: Final = 1_000
"""env_steps of a round if the budget bounds neither env_steps nor updates."""


def cadence_for(schedule: Schedule, cadence: Cadence) -> Cadence:
    """Returns the cadence that a job of the schedule uses, derived from the definition's."""
    if schedule is Schedule.CONTINUOUS_TRAIN_AND_EVALUATE:
        return rounds_cadence(cadence)
    return smoke_test_cadence(cadence) if schedule is Schedule.TEST else cadence


def rounds_cadence(cadence: Cadence) -> Cadence:
    """Returns a cadence of rounds, each closed by an evaluation and a snapshot at its exact end.

    A round is as long as the interval between two evaluations, or a tenth of the budget if the
    definition has no such interval. The last round ends with the budget.
    """
    length = _round(cadence.budget) if cadence.evaluation is None else cadence.evaluation
    return replace(
        cadence, evaluation=length, evaluates_during_episode=True, snapshot=copy.copy(length)
    )


def smoke_test_cadence(cadence: Cadence) -> Cadence:
    """Returns a cadence that ends with the first update, one evaluation and one snapshot."""
    budget = Budget({Unit.UPDATES: 1})
    return replace(
        cadence,
        budget=budget,
        epoch=None,
        evaluation=None,
        has_final_evaluation=True,
        saves_before_final_evaluation=False,
        snapshot=None,
        saves_best=False,
    )


def _round(budget: StopBudget) -> int | Trigger:
    bounds = budget.bounds if isinstance(budget, Budget) else {}
    for unit in (Unit.ENV_STEPS, Unit.UPDATES):
        if unit in bounds:
            length = max(1, int(bounds[unit]) // _ROUNDS)
            return length if unit is Unit.ENV_STEPS else IntervalTrigger(length, unit)
    return _UNBOUNDED_ROUND
