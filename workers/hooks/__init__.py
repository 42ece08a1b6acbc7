"""Hooks: the engine calls them at its events; they may request a stop or change settings."""

from workers.hooks.evaluation_hooks import EvaluationHook, OptunaPrunerHook, SuccessScoreHook
from workers.hooks.guards import NanGuardHook, SuccessHook
from workers.hooks.learning_rate import LearningRateHook
from workers.hooks.step_hooks import (
    FiniteStatisticsHook,
    LinearInterpolationHook,
    StepHook,
    learning_rate_setter,
    set_learning_rate,
)
from workers.hooks.video import VideoHook

__all__ = [
    "EvaluationHook",
    "FiniteStatisticsHook",
    "LearningRateHook",
    "LinearInterpolationHook",
    "NanGuardHook",
    "OptunaPrunerHook",
    "StepHook",
    "SuccessHook",
    "SuccessScoreHook",
    "VideoHook",
    "learning_rate_setter",
    "set_learning_rate",
]
