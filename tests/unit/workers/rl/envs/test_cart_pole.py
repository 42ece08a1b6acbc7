"""The vectorised cart-pole equals Gymnasium's bit by bit, on arrays and on Python numbers."""

import functools
from typing import Any

import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from palestra.contract.envs import EnvDefinition
from palestra.contract.names import TRAINER_SIMULATOR
from workers.core.errors import EnvironmentFailedError
from workers.rl.envs.cart_pole import LEAST, CartPoleVector
from workers.rl.envs.factory import find_simulator, make_rendered, make_vector
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.vector import SerialVector


def make_both_vectors(num_envs: int = 9, **options: Any) -> tuple[Any, Any]:
    fast = make_vector(EnvDefinition(id="CartPole-v1", num_envs=num_envs, **options))
    parts = [make_vector(EnvDefinition(id="CartPole-v1", **options)) for _ in range(num_envs)]
    assert isinstance(fast, CartPoleVector)
    assert all(isinstance(part, SerialVector) for part in parts)
    return fast, SerialVector([lambda part=part: part.envs[0] for part in parts])


def choose_actions(generator: np.random.Generator, observation: Any) -> Any:
    """Returns actions that balance the pole in the first slots, so that their episodes last.

    Actions of the other slots are random.
    """
    lean = observation[:, 2] + 0.3 * observation[:, 3] > 0
    return np.where(np.arange(len(lean)) < 4, lean, generator.integers(0, 2, len(lean))).astype(
        np.int64
    )


@pytest.mark.parametrize(
    "options", [{"max_episode_steps": 60}, {"kwargs": {"sutton_barto_reward": True}}]
)
@pytest.mark.parametrize("singly", [False, True])
def test_every_result_equals_gymnasiums(options: Any, singly: bool) -> None:
    limit, kwargs = options.get("max_episode_steps", 500), options.get("kwargs", {})
    fast = make_both_vectors(**options)[int(singly)]
    slow = SerialVector(
        [functools.partial(EpisodeEnv, CartPoleEnv(**kwargs), index, limit) for index in range(9)]
    )
    seeds, over, generator = np.arange(9), np.ones(9, np.bool_), np.random.default_rng(1)
    ended = [0, 0]
    for step in range(700):
        if step % 3 == 0 and over.any():
            # Ended slots wait up to two steps for their reset.
            observations = fast.begin(over, seeds.tolist()), slow.begin(over, seeds.tolist())
            assert np.array_equal(*observations)
            seeds += 9
        chosen = choose_actions(generator, observations[0])
        stepped = fast.advance(chosen), slow.advance(chosen)
        assert [part.dtype for part in stepped[0]] == [part.dtype for part in stepped[1]]
        assert all(np.array_equal(a, b) for a, b in zip(*stepped, strict=True))
        observations = stepped[0][0], stepped[1][0]
        over = stepped[0][2] | stepped[0][3]
        ended = [ended[0] + int(stepped[0][2].sum()), ended[1] + int(stepped[0][3].sum())]
    assert ended[0] > 20
    assert ended[1] > 20 or "kwargs" in options


def test_a_running_episode_is_restored() -> None:
    first, second = make_both_vectors()[0], make_both_vectors()[0]
    first.begin(np.arange(9) < 6, list(range(9)))
    for step in range(5):
        seen = first.advance(np.full(9, step % 2))[0]
    second.begin(np.ones(9, np.bool_), [3] * 9)
    found = second.restore_episodes(first.save_episodes())
    assert all(one.is_reproduced for one in found)
    assert [one.observation is None for one in found] == [False] * 6 + [True] * 3
    assert np.array_equal(np.stack([one.observation for one in found[:6]]), seen[:6])
    for step in range(80):
        after = first.advance(np.full(9, step % 2)), second.advance(np.full(9, step % 2))
        assert all(np.array_equal(a[:6], b[:6]) for a, b in zip(*after, strict=True))
    assert second.restore_episodes(make_both_vectors()[1].save_episodes())[0] == (None, True)


@pytest.mark.parametrize("to_fast", [True, False])
def test_an_episode_is_restored_by_the_other_implementation(to_fast: bool) -> None:
    fast, slow = make_both_vectors()
    source, found = (slow, fast) if to_fast else (fast, slow)
    source.begin(np.arange(9) < 8, list(range(9)))
    for step in range(5):
        seen = source.advance(np.full(9, step % 2))[0].copy()
    if to_fast:
        restored = found.restore_episodes(source.save_episodes())
    else:
        restored = [
            env.restore_episode([saved])
            for env, saved in zip(found.envs, source.save_episodes(), strict=True)
        ]
    assert [one.is_reproduced for one in restored] == [True] * 9
    assert restored[8].observation is None
    assert np.array_equal(np.stack([one.observation for one in restored[:8]]), seen[:8])
    for step in range(80):
        after = source.advance(np.full(9, step % 2)), found.advance(np.full(9, step % 2))
        assert all(np.array_equal(a[:8], b[:8]) for a, b in zip(*after, strict=True))


def test_an_episode_saved_by_its_actions_begins_again() -> None:
    assert make_both_vectors()[0].restore_episodes(
        [{"over": False, "seed": 1, "length": 2, "hash": "", "actions": np.zeros(2)}] * 9
    )[0] == (None, False)


def test_the_counted_episode_is_the_one_that_is_filmed() -> None:
    fast, film = make_both_vectors()[0], make_rendered(EnvDefinition(id="CartPole-v1", num_envs=9))
    observation = fast.begin(np.ones(9, np.bool_), list(range(9)))
    assert np.array_equal(film.reset(seed=5)[0], observation[5])
    for step in range(15):
        assert np.array_equal(film.step(step % 2)[0], fast.advance(np.full(9, step % 2))[0][5])
    film.close()


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int32, np.float32, object])
def test_actions_may_be_numbers_of_any_kind(kind) -> None:
    fast, other = make_both_vectors()[0], make_both_vectors()[0]
    actions = np.arange(9) % 2
    for vector in (fast, other):
        vector.begin(np.ones(9, np.bool_), list(range(9)))
    for _ in range(3):
        assert np.array_equal(fast.advance(actions.astype(kind))[0], other.advance(actions)[0])


def test_other_actions_are_refused_and_other_variants_stepped_one_by_one() -> None:
    fast = make_both_vectors()[0]
    fast.begin(np.ones(9, np.bool_), [0] * 9)
    before = fast.begin(np.ones(9, np.bool_), [0] * 9).copy()
    for wrong in (
        np.array([0, 2] + [0] * 7),
        np.array([-1] + [0] * 8),
        np.full(9, 0.5),
        np.full(9, np.nan),
        np.zeros((9, 1), np.int64),
    ):
        with pytest.raises(EnvironmentFailedError, match=r"9 actions must be 0 or 1, not \["):
            fast.advance(wrong)
    assert np.array_equal(fast.begin(np.zeros(9, np.bool_), [0] * 9), before), "nothing was moved"
    assert isinstance(
        make_vector(EnvDefinition(id="CartPole-v1", num_envs=LEAST - 1)), SerialVector
    )
    assert isinstance(
        make_vector(
            EnvDefinition(id="CartPole-v1", num_envs=9, kwargs={"render_mode": "rgb_array"})
        ),
        SerialVector,
    )
    assert isinstance(make_vector(EnvDefinition(id="CartPole-v0", num_envs=9)), CartPoleVector)


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_the_registered_simulator_is_taken_on_request(
    monkeypatch: pytest.MonkeyPatch, vectorization: Any
) -> None:
    spec = EnvDefinition(id="CartPole-v1", num_envs=9, vectorization=vectorization)
    assert find_simulator(spec) == "palestra"
    monkeypatch.setenv(TRAINER_SIMULATOR, "registered")
    assert find_simulator(spec) == "registered"
    vector = make_vector(spec)
    try:
        saved = vector.begin(np.ones(9, np.bool_), list(range(9))), vector.save_episodes()[0]
    finally:
        vector.close()
    assert not isinstance(vector, CartPoleVector)
    assert "actions" in saved[1], "Gymnasium's own is restored by its actions"
    assert type(make_rendered(spec).unwrapped) is CartPoleEnv


def test_environments_without_a_simulator_of_palestras_have_none() -> None:
    assert find_simulator(EnvDefinition(id="Acrobot-v1")) is None
