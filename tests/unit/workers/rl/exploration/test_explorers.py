import numpy as np
import pytest

from workers.core.rng import derive_generator
from workers.rl.exploration.additive_noise import (
    ActionBounds,
    AdditiveGaussian,
    AdditiveOrnsteinUhlenbeck,
    OrnsteinUhlenbeckConstants,
)
from workers.rl.exploration.epsilon_greedy import (
    EpsilonGreedy,
    LinearEpsilonGreedy,
)
from workers.rl.exploration.explorer import Explorer, GreedyExplorer
from workers.rl.exploration.random_blocks import STEPS
from workers.rl.exploration.schedules import ConstantSchedule, LinearSchedule


def make_generator(seed: int = 0) -> np.random.Generator:
    return derive_generator(seed, "agent/explore")


WIDE = ActionBounds(-100.0, 100.0)
CASES = {
    "greedy": lambda seed: GreedyExplorer(),
    "constant": lambda seed: EpsilonGreedy(
        ConstantSchedule(0.3), actions=4, generator=make_generator(seed)
    ),
    "linear": lambda seed: LinearEpsilonGreedy(
        start=1.0, end=0.1, decay_steps=500, actions=4, generator=make_generator(seed)
    ),
    "gaussian": lambda seed: AdditiveGaussian(
        LinearSchedule(1.0, 0.1, 300), generator=make_generator(seed)
    ),
    "ou": lambda seed: AdditiveOrnsteinUhlenbeck(
        0.3,
        generator=make_generator(seed),
        constants=OrnsteinUhlenbeckConstants(starts_at_mu=False),
    ),
}
DISCRETE = {"greedy", "constant", "linear"}


@pytest.fixture(params=CASES)
def case(request):
    return request.param


def make_greedy_actions(case: str, count: int):
    return (
        np.arange(count) % 4
        if case in DISCRETE
        else np.linspace(-1, 1, count * 4, dtype=np.float32).reshape(count, 4)
    )


def record_actions(explorer: Explorer, greedy, steps: range) -> list:
    actions = []
    for step in steps:
        actions.append(explorer.explore(greedy, step * len(greedy)))
        explorer.reset(np.arange(len(greedy)) == step % 7)
    return actions


def test_the_input_is_not_changed_and_actions_have_its_type(case) -> None:
    explorer, greedy = CASES[case](0), make_greedy_actions(case, 3)
    kept = greedy.copy()
    for actions in record_actions(explorer, greedy, range(20)):
        assert actions.dtype == greedy.dtype
        assert actions.shape == greedy.shape
    assert np.array_equal(greedy, kept)
    assert all(name.startswith("explore/") for name in explorer.metrics(10))


@pytest.mark.parametrize("at", [0, 1, 100, STEPS - 1, STEPS, STEPS + 1, 2 * STEPS])
def test_a_loaded_explorer_goes_on_with_the_same_draws(case, at) -> None:
    greedy = make_greedy_actions(case, 2)
    first, second = CASES[case](0), CASES[case](9)
    record_actions(second, greedy, range(3))
    record_actions(first, greedy, range(at))
    second.load_state_dict(first.state_dict())
    steps = range(at, at + 300)
    assert all(
        np.array_equal(one, other)
        for one, other in zip(
            record_actions(first, greedy, steps), record_actions(second, greedy, steps), strict=True
        )
    )
    assert case == "greedy" or str(first.state_dict()) == str(second.state_dict())


def test_another_number_of_environments_begins_another_block(case) -> None:
    one, other = CASES[case](0), CASES[case](0)
    for explorer in (one, other):
        record_actions(explorer, make_greedy_actions(case, 2), range(5))
    other.load_state_dict(one.state_dict())
    pairs = zip(
        record_actions(one, make_greedy_actions(case, 5), range(9)),
        record_actions(other, make_greedy_actions(case, 5), range(9)),
        strict=True,
    )
    assert all(np.array_equal(first, second) for first, second in pairs)


def test_blocks_of_very_many_environments_are_shorter() -> None:
    explorer = EpsilonGreedy(ConstantSchedule(1.0), actions=4, generator=make_generator())
    actions = record_actions(explorer, np.zeros(40_000, np.int64), range(4))
    assert np.bincount(np.concatenate(actions)) / 160_000 == pytest.approx([0.25] * 4, abs=0.01)
    assert explorer.draws.block[0].shape == (1, 40_000)


def test_schedules_equal_a_calculation_by_hand() -> None:
    assert [ConstantSchedule(0.3)(step) for step in (0, 10)] == [0.3, 0.3]
    assert [LinearSchedule(1.0, 0.0, 4)(step) for step in (0, 1, 4, 9)] == [1.0, 0.75, 0.0, 0.0]
    assert LinearSchedule(1.0, 0.2, 0)(0) == 0.2


def test_without_replaced_actions_the_greedy_ones_are_returned() -> None:
    explorer, greedy = (
        EpsilonGreedy(ConstantSchedule(0.1), actions=4, generator=make_generator()),
        np.full(1, 7),
    )
    same = [explorer.explore(greedy, 0) is greedy for _ in range(5000)]
    assert np.mean(same) == pytest.approx(0.9, abs=0.02)


def test_epsilon_greedy_draws_as_many_numbers_whatever_comes_of_them() -> None:
    never, always = (
        EpsilonGreedy(LinearSchedule(at, at, 1), actions=4, generator=make_generator())
        for at in (0.0, 1.0)
    )
    greedy = np.zeros(3, np.int64)
    record_actions(never, greedy, range(100))
    record_actions(always, greedy, range(100))
    assert str(never.state_dict()) == str(always.state_dict())


def test_gaussian_noise_has_its_scale_and_stays_within_bounds() -> None:
    explorer = AdditiveGaussian(0.2, generator=make_generator(), bounds=WIDE)
    noise = explorer.explore(np.full((50_000, 2), 3.0, np.float32), 0) - 3
    assert noise.mean() == pytest.approx(0, abs=0.005)
    assert noise.std() == pytest.approx(0.2, rel=0.02)
    bounded = AdditiveGaussian(
        5.0,
        generator=make_generator(),
        bounds=ActionBounds(np.array([-1.0, 0.0]), np.array([1.0, 2.0])),
    )
    actions = np.concatenate(record_actions(bounded, np.zeros((10, 2), np.float64), range(50)))
    assert actions.dtype == np.float64
    assert actions.min(0).tolist() == [-1, 0]
    assert actions.max(0).tolist() == [1, 2]


def test_ornstein_uhlenbeck_noise_equals_a_calculation_by_hand() -> None:
    constants = OrnsteinUhlenbeckConstants(theta=0.25, mu=0.5)
    explorer = AdditiveOrnsteinUhlenbeck(
        0.3, generator=make_generator(), constants=constants, bounds=None
    )
    normal = make_generator().standard_normal((STEPS, 2, 3), dtype=np.float32)
    at = np.full((2, 3), 0.5)
    greedy = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    for step in range(50):
        at = at + 0.25 * (0.5 - at) + 0.3 * normal[step]
        np.testing.assert_allclose(
            explorer.explore(greedy, step), greedy + at, rtol=1e-4, atol=1e-5
        )
        if step == 20:
            explorer.reset(np.array([False, True]))
            at[1] = 0.5


def test_ornstein_uhlenbeck_noise_has_the_mean_and_deviation_of_the_theory() -> None:
    for at_mu in (True, False):
        explorer = AdditiveOrnsteinUhlenbeck(
            0.3,
            generator=make_generator(),
            constants=OrnsteinUhlenbeckConstants(starts_at_mu=at_mu),
            bounds=None,
        )
        noise = np.stack(
            record_actions_without_resets(explorer, np.zeros((2000, 1), np.float32), 60)
        )
        spread = 0.3 / np.sqrt(2 * 0.15 - 0.15**2)
        assert noise[-1].std() == pytest.approx(spread, rel=0.06)
        assert noise[0].std() == pytest.approx(0.3 if at_mu else spread, rel=0.06)
        assert np.corrcoef(noise[-2].ravel(), noise[-1].ravel())[0, 1] == pytest.approx(
            0.85, abs=0.03
        )


def record_actions_without_resets(explorer: Explorer, greedy, steps: int) -> list:
    return [explorer.explore(greedy, step) for step in range(steps)]


def test_greedy_returns_the_same_array() -> None:
    greedy = np.arange(3)
    assert GreedyExplorer().explore(greedy, 0) is greedy
    assert GreedyExplorer().metrics(0) == {}
