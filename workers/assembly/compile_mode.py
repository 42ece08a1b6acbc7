"""Chooses whether the updates of built-in agents are compiled.

The choice follows from `update_costs.json`, which `python -m benchmarks.compilation` wrote, and
not from a measurement: it would differ from attempt to attempt, and so would the run's numbers.
"""

import functools
import json
import os
import shutil
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal

from gymnasium import Space
from pydantic import BaseModel

from palestra.contract.definition import RlDefinition
from palestra.contract.names import CompileMode
from workers.core.errors import DefinitionError
from workers.core.types import LearnSchedule
from workers.rl.networks.nature_cnn import is_image

COMPILE_VARIABLE: Final = "PALESTRA_WORKER_COMPILE"
"""Environment variable of a worker: with the value `eager`, `auto` compiles nothing there."""


class UpdateCost(BaseModel):
    """What one kind of update takes, as measured on one thread of a CPU."""

    first_seconds: float
    """Time of the first updates beyond that of later ones, with no compiled code on disk."""
    stored_seconds: float
    """The same with the code on disk."""
    eager_ms: float
    """Time of an update."""
    compiled_ms: float

    @property
    def worth_updates(self) -> float:
        """Number of updates from which a training with compilation takes less time.

        Compiled code may be on disk already; the number is that of the first start.
        """
        gain = (self.eager_ms - self.compiled_ms) / 1_000
        return self.first_seconds / gain if gain > 0 else float("inf")


@functools.cache
def update_costs() -> Mapping[str, Mapping[str, UpdateCost]]:
    """Returns what updates cost by agent, and for it by the kind of observation.

    The kinds are `vector` and, where it was measured, `image`. An agent that is missing compiles
    no update.
    """
    table = json.loads(files("workers.assembly").joinpath("update_costs.json").read_text("utf-8"))
    return {
        agent: {kind: UpdateCost(**cost) for kind, cost in kinds.items()}
        for agent, kinds in table["agents"].items()
    }


def find_update_cost(agent: str, observation_space: Space[object]) -> UpdateCost | None:
    """Returns what an update of a built-in agent costs; `None` if it is never compiled."""
    kinds = update_costs().get(agent)
    if kinds is None:
        return None
    return kinds.get("image" if is_image(observation_space) else "vector", kinds["vector"])


def choose_compile_mode(
    requested: Literal["auto", "eager", "compiled", "cudagraph"],
    device: str,
    updates: float,
    cost: UpdateCost | None,
) -> CompileMode:
    """Returns how updates run.

    Args:
        requested: `auto` compiles where enough updates follow and this machine can.
        device: A torch device.
        updates: Maximum number of updates of the training.
        cost: What an update costs; `None` if that was not measured, and `auto` does not compile.

    Raises:
        DefinitionError: For `cudagraph` without a GPU.
    """
    if requested == "cudagraph" and device == "cpu":
        raise DefinitionError(
            "resources.compile: cudagraph needs a GPU: set resources.gpus to 1, or compile to "
            "compiled"
        )
    if requested != "auto":
        return requested
    can_compile = device != "cpu" or _has_compiler()
    is_worth = cost is not None and updates >= cost.worth_updates
    is_allowed = os.environ.get(COMPILE_VARIABLE) != "eager"
    return "compiled" if can_compile and is_worth and is_allowed else "eager"


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
