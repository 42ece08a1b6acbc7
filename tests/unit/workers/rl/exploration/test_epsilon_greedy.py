import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.rng import derive_generator
from workers.rl.exploration.epsilon_greedy import LinearEpsilonGreedy


def make_explorer(start=1.0, end=0.1, decay_steps=100, actions=4, seed=0) -> LinearEpsilonGreedy:
    generator = derive_generator(seed, "agent/explore")
    return LinearEpsilonGreedy(
        start=start, end=end, decay_steps=decay_steps, actions=actions, generator=generator
    )


@pytest.mark.parametrize(
    ("env_steps", "epsilon"), [(0, 1.0), (50, 0.55), (99, 0.109), (100, 0.1), (10**9, 0.1)]
)
def test_epsilon_falls_linearly_and_stays(env_steps, epsilon) -> None:
    assert make_explorer().epsilon(env_steps) == pytest.approx(epsilon)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_epsilon_never_rises(early, later) -> None:
    early, later = sorted((early, later))
    assert make_explorer().epsilon(early) >= make_explorer().epsilon(later)


def test_no_exploration_keeps_the_greedy_actions() -> None:
    greedy = np.array([3, 1, 2])
    assert np.array_equal(make_explorer(start=0.0, end=0.0).explore(greedy, 0), greedy)


def test_full_exploration_is_uniform_and_does_not_change_its_input() -> None:
    greedy = np.zeros(40_000, np.int64)
    actions = make_explorer().explore(greedy, 0)
    assert np.bincount(actions, minlength=4) / 40_000 == pytest.approx([0.25] * 4, abs=0.01)
    assert not greedy.any()


def test_the_share_of_random_actions_is_epsilon() -> None:
    actions = make_explorer().explore(np.zeros(40_000, np.int64), 50)
    assert (actions != 0).mean() == pytest.approx(0.55 * 0.75, abs=0.01)


def test_a_loaded_explorer_goes_on_with_the_same_draws() -> None:
    first = make_explorer()
    first.explore(np.zeros(5, np.int64), 0)
    second = make_explorer(seed=9)
    second.load_state_dict(first.state_dict())
    for env_steps in range(0, 100, 10):
        assert np.array_equal(
            first.explore(np.zeros(5, np.int64), env_steps),
            second.explore(np.zeros(5, np.int64), env_steps),
        )
