"""Helpers for the tests of agents."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from palestra.contract.agents import PARAMETER_MODELS, BuiltinAgent
from workers.core.types import AgentContext, Experience, StateTree

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
ACTIONS = {
    "discrete": spaces.Discrete(4),
    "box": spaces.Box(-2, 2, (2,), np.float32),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_binary": spaces.MultiBinary(3),
}
"""An action space of each kind."""


def make_parameters(name: str, **values: Any) -> BuiltinAgent:
    """Returns the parameters of a built-in agent; values that its model lacks are left out."""
    model = PARAMETER_MODELS[name]
    return model(name=name, **{key: values[key] for key in values if key in model.model_fields})


def make_context(
    action_space=None, observation_space=BOX, num_envs=2, seed=0, **more
) -> AgentContext:
    return AgentContext(
        observation_space, action_space or spaces.Discrete(4), num_envs, seed, **more
    )


def make_experience(
    agent, steps: int, num_envs: int, rng: np.random.Generator, size: int = 3
) -> Experience:
    """Returns random transitions whose actions the agent chose."""
    observation = rng.uniform(-1, 1, (steps, num_envs, size)).astype(np.float32)
    action = np.stack([agent.act(row, explore=True) for row in observation])
    terminated = rng.random((steps, num_envs)) < 0.1
    truncated = (rng.random((steps, num_envs)) < 0.1) & ~terminated
    successor = rng.uniform(-1, 1, (steps, num_envs, size)).astype(np.float32)
    reward = rng.normal(size=(steps, num_envs)).astype(np.float32)
    return Experience(
        observation, action, reward, terminated, truncated, successor, env_steps=steps * num_envs
    )


def list_leaves(tree, prefix: str = "") -> dict[str, object]:
    """Returns the leaves of a state by their path."""
    if isinstance(tree, Mapping):
        return {
            path: leaf
            for key, item in tree.items()
            for path, leaf in list_leaves(item, f"{prefix}/{key}").items()
        }
    return {prefix: tree}


def assert_same_state(one: StateTree, other: StateTree) -> None:
    first, second = list_leaves(one), list_leaves(other)
    assert first.keys() == second.keys()
    for path, leaf in first.items():
        if isinstance(leaf, torch.Tensor):
            assert torch.equal(leaf, second[path]), path
        elif isinstance(leaf, np.ndarray):
            assert np.array_equal(leaf, second[path]), path
        else:
            assert type(leaf) in {int, float, str, bool, type(None)}, path
            assert leaf == second[path], path
