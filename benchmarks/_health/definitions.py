"""What is trained to try the health rules: the learning presets, and definitions with a fault.

Each faulty definition is a preset with one or two members changed, and names the rules of which at
least one must find it. Imports neither torch nor gymnasium.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks._health.names import ENDLESS, SCALED
from benchmarks._learning.presets import list_preset_paths, read_preset
from palestra.contract.job_options import Submission


@dataclass(frozen=True, slots=True)
class Fault:
    """A preset with a fault.

    Attributes:
        preset: Name of the preset.
        what: The fault in words.
        expected: Rules of which at least one must find it.
        agent: Changed members of the agent.
        env: Changed members of the environment.
        env_steps: Length of the training, without an early end.
    """

    preset: str
    what: str
    expected: frozenset[str]
    agent: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)
    env_steps: int = 40_960


FAULTS: Final[Mapping[str, Fault]] = {
    "dqn-step-size": Fault(
        "cartpole-dqn",
        "step size x100",
        frozenset({"values_above_rewards", "not_finite"}),
        {"learning_rate": 0.1, "target_update_every": 16},
        env_steps=102_400,
    ),
    "dqn-undiscounted": Fault(
        "cartpole-dqn",
        "gamma of 1",
        frozenset({"values_above_rewards"}),
        {"gamma": 1.0, "target_update_every": 16},
        {"max_episode_steps": 200},
        env_steps=20_480,
    ),
    "dqn-tiny-buffer": Fault(
        "cartpole-dqn",
        "buffer of 100",
        frozenset({"return_fell", "values_above_rewards"}),
        {"buffer_size": 104, "learning_starts": 64, "target_update_every": 16},
        env_steps=102_400,
    ),
    "dqn-no-target": Fault(
        "cartpole-dqn",
        "no target network, step size x20",
        frozenset({"values_above_rewards"}),
        {"target_update_every": 1, "double": False, "learning_rate": 0.02, "max_grad_norm": None},
        env_steps=20_480,
    ),
    "ppo-step-size": Fault(
        "cartpole-ppo",
        "step size x100",
        frozenset({"policy_steps_too_large", "entropy_collapsed"}),
        {"learning_rate": 0.1},
    ),
    "ppo-no-entropy": Fault(
        "cartpole-ppo",
        "entropy coefficient 0, step size x50",
        frozenset({"entropy_collapsed", "policy_steps_too_large"}),
        {"entropy_coefficient": 0.0, "learning_rate": 0.05},
    ),
    "ppo-reward-scale": Fault(
        "cartpole-ppo",
        "rewards x1000",
        frozenset({"gradients_clipped"}),
        {},
        {"id": SCALED, "kwargs": {"reward": 1000.0}},
    ),
    "a2c-step-size": Fault(
        "cartpole-a2c",
        "step size x100",
        frozenset({"entropy_collapsed", "explained_variance_negative"}),
        {"learning_rate": 0.2},
    ),
    "ppo-huge-rewards": Fault(
        "cartpole-ppo",
        "rewards of 1e30",
        frozenset({"not_finite"}),
        {},
        {"id": SCALED, "kwargs": {"reward": 1e30}},
        env_steps=20_480,
    ),
    "td3-endless": Fault(
        "pendulum-td3",
        "no time limit",
        frozenset({"no_episode_finished"}),
        {},
        {"id": ENDLESS},
        env_steps=15_000,
    ),
    "td3-step-size": Fault(
        "pendulum-td3",
        "step size x100, gamma of 1, no target networks",
        frozenset({"values_above_rewards", "not_finite"}),
        {"learning_rate": 0.1, "gamma": 1.0, "tau": 1.0},
        {"max_episode_steps": 200},
        env_steps=15_000,
    ),
}
"""Faulty definitions by name."""


def list_presets() -> list[str]:
    """Returns the names of all presets, which must have no finding."""
    return [path.stem for path in list_preset_paths()]


def build_submission(name: str, env_steps: int | None = None) -> Submission:
    """Returns the submission of a preset or of a faulty definition.

    Args:
        name: Name of a preset or of one of `FAULTS`.
        env_steps: Shorter budget.

    Raises:
        ValueError: If there is no such definition.
    """
    fault = FAULTS.get(name)
    (path,) = list_preset_paths([fault.preset if fault else name])
    document = read_preset(path).submission.model_dump(mode="json")
    definition = document["definition"]
    # Trainings are so short that compiling would take longer than it saves.
    document["options"]["resources"]["compile"] = "eager"
    if fault is not None:
        definition["agent"] |= fault.agent
        definition["env"] |= fault.env
        definition["loop"]["env_steps"] = fault.env_steps
        definition["stop"]["success_score"] = None
        # Evaluations end even where the environment has no time limit.
        definition["evaluation"]["max_episode_steps"] = 500
    if env_steps is not None:
        definition["loop"]["env_steps"] = min(env_steps, definition["loop"]["env_steps"])
    return Submission.model_validate_json(json.dumps(document))


def list_expected(name: str) -> frozenset[str]:
    """Returns the rules of which one must find the fault of a definition; empty for a preset."""
    fault = FAULTS.get(name)
    return fault.expected if fault else frozenset()


def describe_all() -> Iterator[tuple[str, str]]:
    """Yields name and fault of every definition, the presets first."""
    yield from ((name, "") for name in list_presets())
    yield from ((name, fault.what) for name, fault in FAULTS.items())
