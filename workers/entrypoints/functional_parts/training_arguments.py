"""The arguments of a training function, and their checks."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from palestra.contract.names import MAX_STEP
from workers.core.counts import check_count
from workers.entrypoints.functional_parts.evaluator import EvaluationSettings
from workers.hooks.evaluation_hooks import Trainer, check_support
from workers.hooks.step_hooks import StepCallable
from workers.rl.envs.caller_envs import CallerEnvs

StrPath = str | os.PathLike[str]

ALL: Final = "all"
WEIGHTS: Final = "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCall:
    """The arguments of a training function that concern evaluation."""

    settings: EvaluationSettings
    env: CallerEnvs | None
    hooks: Sequence[Any]
    saves_best: bool
    writes_events: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCall:
    """The arguments of one call of a training function."""

    agent: Any
    env: CallerEnvs
    steps: int
    outdir: str
    is_batch: bool
    function: str
    checkpoint_freq: int | None
    max_episode_len: int | None
    step_offset: int
    evaluates_during_episode: bool
    successful_score: float | None
    step_hooks: Sequence[StepCallable]
    logger: logging.Logger | None
    log_interval: int | None = None
    return_window_size: int = 100
    evaluator: Any = None
    evaluation: EvaluationCall | None = None
    seed: int | None = None
    resume: str | None = None
    resume_parts: str | Sequence[str] = ALL
    time_limit: float | None = None
    keep_checkpoints: int | None = None
    save_memory: bool = False

    @property
    def directory(self) -> Path:
        """The output directory as a path."""
        return Path(self.outdir)


def check_call(call: TrainingCall) -> None:
    """Raises ValueError or TypeError for an invalid argument, before anything is written."""
    if call.evaluation is not None:
        trainer: Trainer = "train_agent_batch" if call.is_batch else "train_agent"
        check_support(call.evaluation.hooks, trainer, call.function)
    for name, value in (
        ("steps", call.steps),
        ("step_offset", call.step_offset),
        ("checkpoint_freq", call.checkpoint_freq),
    ):
        if value is not None:
            check_count(value, name, 0)
    for name, value in (
        ("log_interval", call.log_interval),
        ("keep_checkpoints", call.keep_checkpoints),
    ):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1 or None, not {value}")
    if call.return_window_size < 1:
        raise ValueError(f"return_window_size must be at least 1, not {call.return_window_size}")
    if call.seed is not None and not 0 <= call.seed <= MAX_STEP:
        raise ValueError(f"seed must be from 0 to 2**53 - 1, not {call.seed}")
    if isinstance(call.resume_parts, str) and call.resume_parts not in {ALL, WEIGHTS}:
        raise ValueError(
            f"resume_parts must be '{ALL}', '{WEIGHTS}' or names in a list, "
            f"not {call.resume_parts!r}"
        )
    if call.resume_parts != ALL and call.resume is None:
        raise ValueError("resume_parts says what to take from a snapshot: give resume, too")


def path_text(path: StrPath | None) -> str | None:
    """Returns a path as a string; `None` stays `None`."""
    return None if path is None else os.fspath(path)
