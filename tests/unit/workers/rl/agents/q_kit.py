"""Batches and agents for tests of the deep Q-network family."""

import numpy as np
import torch

from palestra.contract.agents import PARAMETER_MODELS
from palestra.contract.agents.q_learning import QLearningParameters
from tests.unit.workers.rl.agents.agent_kit import make_context
from workers.assembly.registry import make_agent
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.drqn import DrqnBatch

Q_LEARNERS = {
    name: model
    for name, model in PARAMETER_MODELS.items()
    if issubclass(model, QLearningParameters)
}
"""Parameter model of every agent of the family, by the agent's name."""


def make_algorithm(hyper, **more):
    """Returns the algorithm for observations of 3 numbers and 4 actions."""
    return make_agent(hyper, make_context(**more)).algorithm


def make_random_batch(algorithm, size: int = 16, seed: int = 0) -> ReplayBatch:
    g, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    discount = 0.99 * (torch.rand(size, generator=g) > 0.2).float()
    columns = (
        torch.randn(size, 3, generator=g),
        torch.randint(4, (size,), generator=g),
        torch.randn(size, generator=g),
    )
    noise = tuple(torch.from_numpy(array[0]) for array in algorithm.noise(rng, (1, size)))
    return ReplayBatch(
        *columns, torch.randn(size, 3, generator=g), discount, torch.rand(size, generator=g), noise
    )


def make_random_sequences(length: int = 6, size: int = 5, seed: int = 0) -> DrqnBatch:
    g = torch.Generator().manual_seed(seed)
    lead = (length, size)
    columns = (
        torch.randn(*lead, 3, generator=g),
        torch.randint(4, lead, generator=g),
        torch.randn(*lead, generator=g),
    )
    flags = torch.rand(*lead, generator=g) < 0.3, (torch.rand(*lead, generator=g) < 0.8).float()
    return DrqnBatch(
        *columns,
        torch.randn(*lead, 3, generator=g),
        0.9 * (torch.rand(*lead, generator=g) > 0.2).float(),
        *flags,
    )


def make_state(algorithm, seed: int = 0):
    """Returns a state whose target network differs from the online network."""
    g = torch.Generator().manual_seed(seed)
    state = algorithm.start(g)
    return state._replace(targets=algorithm.start(g).parameters)
