"""Chooses whether the updates of built-in agents are compiled."""

import os
import shutil
from typing import Final, Literal

from palestra.contract.definition import RlDefinition
from workers.core.errors import DefinitionError
from workers.core.types import CompileMode, LearnSchedule

COMPILE_VARIABLE: Final = "PALESTRA_WORKER_COMPILE"
"""Environment variable of a worker: with the value `eager`, `auto` compiles nothing there."""

WORTH_UPDATES: Final = 10_000
"""Number of updates from which compilation saves time.

The true number is smaller if the compiled code is on disk already, and larger at the first start
of a definition.
"""


def compile_mode(
    wanted: Literal["auto", "eager", "compiled", "cudagraph"], device: str, updates: float
) -> CompileMode:
    """Returns how updates run.

    Args:
        wanted: `auto` compiles where enough updates follow and this machine can.
        device: A torch device.
        updates: Maximum number of updates of the training.

    Raises:
        DefinitionError: For `cudagraph` without a GPU.
    """
    if wanted == "cudagraph" and device == "cpu":
        raise DefinitionError(
            "resources.compile: cudagraph needs a GPU: set resources.gpus to 1, or compile to "
            "compiled"
        )
    if wanted != "auto":
        return wanted
    can = device != "cpu" or _has_compiler()
    return (
        "compiled"
        if can and updates >= WORTH_UPDATES and os.environ.get(COMPILE_VARIABLE) != "eager"
        else "eager"
    )


def max_updates(definition: RlDefinition, schedule: LearnSchedule) -> float:
    """Returns how many updates a training may make by its budget.

    Infinite where only episodes bound it.
    """
    loop, by_env_steps = definition.loop, float("inf")
    if loop.env_steps is not None:
        by_env_steps = (
            max(0, loop.env_steps - schedule.warmup_env_steps)
            / schedule.every_env_steps
            * schedule.updates
        )
    return by_env_steps if loop.updates is None else min(by_env_steps, loop.updates)


def _has_compiler() -> bool:
    return any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++"))
