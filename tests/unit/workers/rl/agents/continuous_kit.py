"""Helpers for the tests of agents for continuous actions."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from tests.unit.workers.rl.agents.agent_kit import make_context
from workers.acceleration.nested_tensors import map_tensors
from workers.core.types import Experience
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.shells.replay_agent import ReplayAgent


def make_algorithm(build, hyper, actions=2) -> Any:
    return make_replay_agent(build, hyper, actions).algorithm


def make_replay_agent(build, hyper, actions=2, **more) -> ReplayAgent:
    return build(hyper, make_context(spaces.Box(-1, 1, (actions,), np.float32), **more))


def make_state(algorithm, seed=0) -> Any:
    """Returns a state whose target networks differ from their online networks."""
    g = torch.Generator().manual_seed(seed)
    state, other = algorithm.start(g), algorithm.start(g)
    targets = {name: getattr(other, name) for name in state._fields if "target" in name}
    return state._replace(**targets)


def make_random_batch(size=16, inputs=3, actions=2, seed=0, noises=0) -> ReplayBatch:
    g = torch.Generator().manual_seed(seed)
    observation, successor = torch.randn(2, size, inputs, generator=g)
    discount = 0.99 * (torch.rand(size, generator=g) > 0.2).float()
    noise = tuple(torch.randn(size, actions, generator=g) for _ in range(noises))
    action = torch.rand(size, actions, generator=g) * 2 - 1
    return ReplayBatch(
        observation,
        action,
        torch.randn(size, generator=g),
        successor,
        discount,
        torch.ones(size),
        noise,
    )


def stack_states(states: list[Any]) -> Any:
    return map_tensors(lambda *leaves: torch.stack(leaves), *states)


def get_row(stack: Any, index: int) -> Any:
    return map_tensors(lambda leaf: leaf[index], stack)


def make_modules(
    vector: torch.Tensor, sizes: tuple[int, ...], copies: int = 1
) -> list[torch.nn.Sequential]:
    """Returns modules with a ReLU between layers and the parameters of a flat vector.

    Tensors of all copies are stacked.
    """
    made = []
    for index in range(copies):
        layers: list[torch.nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        module, begin = torch.nn.Sequential(*layers[:-1]), 0
        with torch.no_grad():
            for parameter in module.parameters():
                count = parameter.numel()
                parameter.copy_(
                    vector[begin + index * count : begin + (index + 1) * count].view_as(parameter)
                )
                begin += copies * count
        made.append(module)
    return made


def flatten(made: list[torch.nn.Sequential]) -> torch.Tensor:
    """Returns the flat parameter vector that `make_modules` takes."""
    parts = zip(*(module.parameters() for module in made), strict=True)
    return torch.cat([tensor.detach().reshape(-1) for same in parts for tensor in same])


def measure_gradient(parameters: Iterable[torch.nn.Parameter]) -> torch.Tensor:
    """Returns the norm of the gradients that `backward` has left."""
    return torch.linalg.vector_norm(torch.cat([one.grad.reshape(-1) for one in parameters]))


def follow(target: torch.nn.Module, online: torch.nn.Module, tau: float) -> None:
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, tau)


def assert_learns_a_bandit(build, hyper, rounds=20) -> None:
    """Asserts that an agent learns a bandit with continuous actions.

    The reward is minus the squared distance of the action from half the observation; episodes have
    one step.
    """
    agent = build(
        hyper,
        make_context(
            spaces.Box(-2, 2, (1,), np.float32),
            spaces.Box(-1, 1, (1,), np.float32),
            num_envs=64,
            seed=1,
        ),
    )
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        observation, successor = rng.uniform(-1, 1, (2, 1, 64, 1)).astype(np.float32)
        action = agent.act(observation[0], explore=True)[None]
        reward = -np.square(action - observation / 2)[..., 0].astype(np.float64)
        flags = np.ones((1, 64), np.bool_), np.zeros((1, 64), np.bool_)
        agent.observe(Experience(observation, action, reward, *flags, successor, env_steps=64))
        agent.learn(15)
    asked = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    np.testing.assert_allclose(agent.act(asked, explore=False), asked / 2, atol=0.2)
