"""The explorers of a pack choose the same actions as each explorer does singly."""

from typing import Any

import numpy as np
import pytest

from workers.core.rng import derive_generator
from workers.rl.exploration.additive_noise import AdditiveGaussian, AdditiveOrnsteinUhlenbeck
from workers.rl.exploration.epsilon_greedy import EpsilonGreedy
from workers.rl.exploration.explorer import GreedyExplorer
from workers.rl.exploration.pack_explorers import JoinedExplorers
from workers.rl.exploration.random_blocks import STEPS
from workers.rl.exploration.schedules import ConstantSchedule

FLOATS = np.linspace(-0.5, 0.5, 12, dtype=np.float32).reshape(6, 2)
CASES: dict[str, Any] = {
    "epsilon": (
        lambda generator: EpsilonGreedy(ConstantSchedule(0.5), actions=4, generator=generator),
        np.zeros(6, np.int64),
    ),
    "gaussian": (lambda generator: AdditiveGaussian(0.2, generator=generator), FLOATS),
    "ornstein_uhlenbeck": (
        lambda generator: AdditiveOrnsteinUhlenbeck(0.2, generator=generator),
        FLOATS,
    ),
    "greedy": (lambda _: GreedyExplorer(), FLOATS),
}


@pytest.mark.parametrize("name", CASES)
def test_joined_explorers_draw_what_each_draws(name: str) -> None:
    build, greedy = CASES[name]
    together, alone = (
        [build(derive_generator(seed, "agent/explore")) for seed in range(3)] for _ in range(2)
    )
    for one in (*together, *alone):
        # The explorers have drawn random numbers before they are joined.
        one.explore(greedy[:2], 0)
    joined, ended = JoinedExplorers(together), np.array([False, True, False, False, False, True])
    for step in range(STEPS + 5):
        actions = joined.explore(greedy, step)
        each = [one.explore(own, step) for one, own in zip(alone, np.split(greedy, 3), strict=True)]
        np.testing.assert_array_equal(actions, np.concatenate(each))
        joined.reset(ended)
        for one, own in zip(alone, np.split(ended, 3), strict=True):
            one.reset(own)
    joined.write_back()
    for mine, own in zip(together, alone, strict=True):
        assert str(mine.state_dict()) == str(own.state_dict())


def test_explorers_with_different_draw_counts_are_refused() -> None:
    build, greedy = CASES["epsilon"]
    first, second = (build(derive_generator(seed, "agent/explore")) for seed in range(2))
    first.explore(greedy, 0)
    with pytest.raises(RuntimeError, match="out of step"):
        JoinedExplorers([first, second])
