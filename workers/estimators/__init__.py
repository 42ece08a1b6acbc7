"""Estimators and agents built from a model function, with memories, hooks and checkpoints."""

from workers.estimators.agents import Agent, PGAgent
from workers.estimators.basic_hooks import (
    FinalOpsHook,
    GlobalStepWaiterHook,
    NanTensorHook,
    StopAfterNEvalsHook,
)
from workers.estimators.counter_hooks import (
    EpisodeCheckpointSaverHook,
    EpisodeCounterHook,
    EpisodeLoggingTensorHook,
    EpisodeSummarySaverHook,
    StepCheckpointSaverHook,
    StepCounterHook,
    StepLoggingTensorHook,
    StepSummarySaverHook,
    StopAtEpisodeHook,
    StopAtStepHook,
)
from workers.estimators.estimator import Estimator
from workers.estimators.export_strategies import ExportStrategy, make_export_strategy
from workers.estimators.memories import BatchMemory, Memory
from workers.estimators.run_config import RunConfig
from workers.supervised.modes import Modes
from workers.supervised.run_session import EpisodeRecord, SessionRunHook
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import (
    copy_every,
    explore,
    get_module,
    global_step,
    minimize,
    sequence,
)

__all__ = [
    "Agent",
    "BatchMemory",
    "EpisodeCheckpointSaverHook",
    "EpisodeCounterHook",
    "EpisodeLoggingTensorHook",
    "EpisodeRecord",
    "EpisodeSummarySaverHook",
    "Estimator",
    "EstimatorSpec",
    "ExportStrategy",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "Memory",
    "Modes",
    "NanTensorHook",
    "PGAgent",
    "RunConfig",
    "SessionRunHook",
    "StepCheckpointSaverHook",
    "StepCounterHook",
    "StepLoggingTensorHook",
    "StepSummarySaverHook",
    "StopAfterNEvalsHook",
    "StopAtEpisodeHook",
    "StopAtStepHook",
    "copy_every",
    "explore",
    "get_module",
    "global_step",
    "make_export_strategy",
    "minimize",
    "sequence",
]
