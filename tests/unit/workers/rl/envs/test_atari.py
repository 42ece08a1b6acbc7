"""Atari games in both implementations: preprocessing, seeds, restored episodes and episode ends."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from palestra.contract.envs import AtariPreprocessing, EnvDefinition
from workers.core.errors import DefinitionError, PartNotFoundError
from workers.rl.envs.factory import make_rendered, make_training_vector, make_vector
from workers.rl.envs.learner_rewards import ReportingVector

WAYS = ["sync", "native"]
PLAIN = AtariPreprocessing()


def make_spec(
    num_envs: int = 1, way: Any = "sync", name: str = "ALE/Breakout-v5", **options: Any
) -> EnvDefinition:
    return EnvDefinition(
        id=name, num_envs=num_envs, vectorization=way, **{"preprocessing": PLAIN, **options}
    )


def draw_actions(steps: int, num_envs: int = 1) -> Any:
    return np.random.default_rng(1).integers(0, 4, (steps, num_envs))


def record_steps(vector: Any, chosen: Any) -> list[Any]:
    """Returns copies of the results of each step."""
    return [tuple(np.array(part) for part in vector.advance(one)) for one in chosen]


def assert_same(first: list[Any], second: list[Any], slot: int, other: int) -> None:
    for one, two in zip(first, second, strict=True):
        assert all(np.array_equal(a[slot], b[other]) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_an_episode_is_repeated_from_its_seed_whatever_was_before_and_in_any_slot(way: str) -> None:
    one, two = make_vector(make_spec(1, way)), make_vector(make_spec(2, way))
    chosen = draw_actions(60)
    start = one.begin(np.array([True]), [7]).copy()
    first = record_steps(one, chosen)
    two.begin(np.array([True, False]), [3, 0])
    record_steps(two, draw_actions(20, 2))
    again = two.begin(np.array([False, True]), [0, 7])
    assert (start.shape, start.dtype) == ((1, 4, 84, 84), np.uint8)
    assert np.array_equal(again[1], start[0])
    assert_same(first, record_steps(two, np.repeat(chosen, 2, axis=1)), 0, 1)
    one.begin(np.array([True]), [8])
    assert any(
        not np.array_equal(a[0], b[0])
        for a, b in zip(first, record_steps(one, chosen), strict=True)
    )
    one.close()
    two.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_running_game_is_restored(way: str) -> None:
    vector, other = make_vector(make_spec(2, way)), make_vector(make_spec(2, way))
    vector.begin(np.array([True, False]), [7, 0])
    record_steps(vector, draw_actions(9, 2))
    vector.begin(np.array([False, True]), [0, 8])
    seen = record_steps(vector, draw_actions(12, 2))[-1][0]
    restored = other.restore_episodes(vector.save_episodes())
    assert [one.is_reproduced for one in restored] == [True, True]
    assert np.array_equal(np.stack([one.observation for one in restored]), seen)
    going_on = draw_actions(15, 2)[::-1]
    for slot in range(2):
        assert_same(
            record_steps(vector, going_on[slot::2]),
            record_steps(other, going_on[slot::2]),
            slot,
            slot,
        )
    vector.close()
    other.close()


@pytest.mark.parametrize("way", WAYS)
def test_the_last_observation_of_a_game_is_kept_until_the_next_begins(way: str) -> None:
    vector = make_vector(make_spec(2, way, max_episode_steps=20))
    first = vector.begin(np.ones(2, np.bool_), [7, 8]).copy()
    steps = record_steps(vector, np.zeros((10, 2), np.int64))
    vector.begin(np.array([False, True]), [0, 9])
    steps += record_steps(vector, np.zeros((14, 2), np.int64))
    assert [bool(step[3][0]) for step in steps] == [False] * 19 + [True] * 5
    assert not any(step[3][1] for step in steps)
    last = steps[19][0][0]
    assert all(np.array_equal(step[0][0], last) for step in steps[19:])
    assert np.array_equal(last[:3], steps[18][0][0][1:]), (
        "the last frame was added to the ones before"
    )
    assert np.array_equal(vector.begin(np.array([True, False]), [7, 0])[0], first[0])
    vector.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_game_ends_in_a_terminal_state_and_rewards_are_raw(way: str) -> None:
    vector = make_vector(
        make_spec(
            1,
            way,
            name="ALE/MsPacman-v5",
            preprocessing=AtariPreprocessing(frame_skip=16, screen_size=32, frame_stack=1),
        )
    )
    vector.begin(np.array([True]), [3])
    steps = []
    while not (steps and steps[-1][2][0]):
        steps += record_steps(vector, np.array([[1]]))
        assert len(steps) < 2_000
    assert max(float(step[1][0]) for step in steps) >= 10.0
    assert steps[-1][0].shape == (1, 1, 32, 32)
    assert vector.advance(np.array([1]))[1].tolist() == [0.0]
    start = vector.begin(np.array([True]), [3]).copy()
    assert_same(steps[:20], record_steps(vector, np.ones((20, 1), np.int64)), 0, 0)
    assert not np.array_equal(start[0], steps[-1][0][0])
    vector.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_lost_life_ends_the_learners_episode_while_the_game_continues(way: str) -> None:
    vector = make_training_vector(
        make_spec(1, way, preprocessing=AtariPreprocessing(terminal_on_life_loss=True))
    )
    assert isinstance(vector, ReportingVector)
    vector.begin(np.array([True]), [3])
    reported = []
    for _ in range(70):
        *_, terminated, truncated = vector.advance(np.array([1]))
        reported.append(bool(vector.reported_step[1][0]))
        assert not terminated[0]
        assert not truncated[0]
    assert 1 <= sum(reported) <= 4
    vector.close()


@pytest.mark.parametrize("way", WAYS)
def test_the_games_own_time_limit_truncates(way: str) -> None:
    vector = make_vector(make_spec(1, way, kwargs={"max_num_frames_per_episode": 80}))
    vector.begin(np.array([True]), [3])
    record_steps(vector, np.zeros((30, 1), np.int64))
    *_, terminated, truncated = vector.advance(np.array([0]))
    assert (terminated.tolist(), truncated.tolist()) == ([False], [True])
    vector.close()


@pytest.mark.slow
def test_games_in_processes_of_their_own_are_the_same() -> None:
    told = AtariPreprocessing(terminal_on_life_loss=True)
    here, there = (
        make_training_vector(make_spec(2, way, preprocessing=told)) for way in ("sync", "async")
    )
    assert isinstance(here, ReportingVector)
    assert isinstance(there, ReportingVector)
    assert np.array_equal(
        here.begin(np.ones(2, np.bool_), [1, 2]), there.begin(np.ones(2, np.bool_), [1, 2])
    )
    lost = 0
    for one in draw_actions(60, 2):
        assert all(
            np.array_equal(a, b) for a, b in zip(here.advance(one), there.advance(one), strict=True)
        )
        assert all(
            np.array_equal(a, b)
            for a, b in zip(here.reported_step, there.reported_step, strict=True)
        )
        lost += int(here.reported_step[1].sum())
    assert lost
    here.close()
    there.close()


def test_sticky_actions_repeat_the_last_one() -> None:
    def record_frames(sticky: float) -> Any:
        vector = make_vector(
            make_spec(
                1,
                kwargs={"repeat_action_probability": sticky},
                preprocessing=AtariPreprocessing(noop_max=1),
            )
        )
        vector.begin(np.array([True]), [3])
        return np.stack(
            [
                step[0][0]
                for step in record_steps(vector, np.array([[1], [2], [3], [2], [3], [3]] * 4))
            ]
        )

    free, again, stuck, some = (
        record_frames(0.0),
        record_frames(0.0),
        record_frames(1.0),
        record_frames(0.25),
    )
    assert np.array_equal(free, again)
    assert not np.array_equal(free, some)
    assert not np.array_equal(stuck, some)
    assert np.array_equal(stuck[-1][0], stuck[-1][3]), (
        "the paddle never moved and no ball was served"
    )


def test_colours_stacks_and_idle_starts_are_as_asked_for() -> None:
    made = AtariPreprocessing(grayscale=False, frame_stack=2, screen_size=40, noop_max=0)
    for way in WAYS:
        vector = make_vector(make_spec(1, way, preprocessing=made))
        start = vector.begin(np.array([True]), [1])
        assert vector.single_observation_space.shape == start[0].shape == (2, 40, 40, 3)
        assert start[0, 0].max() == 0
        assert start[0, 1].max() > 0
        vector.close()


@pytest.mark.parametrize(("way", "shape"), [("sync", (210, 160, 3)), ("native", (336, 336, 3))])
def test_the_counted_episode_is_the_one_that_is_filmed(way: str, shape: tuple[int, ...]) -> None:
    film, vector = make_rendered(make_spec(1, way)), make_vector(make_spec(1, way))
    assert film.render_mode == "rgb_array"
    assert film.metadata["render_fps"] > 0
    assert np.array_equal(film.reset(seed=5)[0], vector.begin(np.array([True]), [5])[0])
    for action in draw_actions(10)[:, 0].tolist():
        observation, *_ = film.step(action)
        assert np.array_equal(observation, vector.advance(np.array([action]))[0][0])
        picture: Any = film.render()
        assert (picture.shape, picture.dtype) == (shape, np.uint8)
    film.close()
    vector.close()


@pytest.mark.parametrize(
    ("made", "error", "text"),
    [
        (
            make_spec(kwargs={"frameskip": 4}),
            DefinitionError,
            r"env\.kwargs\.frameskip: preprocessing sets it",
        ),
        (
            make_spec(way="native", kwargs={"obs_type": "ram"}),
            DefinitionError,
            r"env\.kwargs\.obs_type: preprocessing sets it",
        ),
        (make_spec(name="CartPole-v1"), DefinitionError, "CartPole-v1 is not a game of ale-py"),
        (
            make_spec(name="CartPole-v1", way="native"),
            DefinitionError,
            "CartPole-v1 has no vector of its own",
        ),
        (
            make_spec(name="PongNoFrameskip-v4", way="native"),
            DefinitionError,
            "PongNoFrameskip-v4 has no vector of its own",
        ),
        (make_spec(way="native", kwargs={"colour": "red"}), DefinitionError, r"env\.kwargs"),
        (make_spec(name="ALE/Kendo-v5"), PartNotFoundError, "not an environment of this worker"),
    ],
)
def test_an_environment_that_cannot_be_made_says_why(
    made: EnvDefinition, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make_vector(made)


def test_a_worker_without_the_games_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(gym.registry, "ALE/Breakout-v5", raising=False)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(PartNotFoundError, match=r"pip install 'palestra\[atari\]'"):
        make_vector(make_spec())


def test_games_need_no_preprocessing() -> None:
    vector = make_vector(EnvDefinition(id="ALE/Pong-v5"))
    assert vector.begin(np.array([True]), [1]).shape == (1, 210, 160, 3)
    vector.close()


def make_counted_vector(
    num_envs: int = 2, sticky: float = 0.0, name: str = "ALE/Breakout-v5"
) -> Any:
    return make_training_vector(
        make_spec(
            num_envs,
            "native",
            name,
            kwargs={"repeat_action_probability": sticky, "max_num_frames_per_episode": 48},
        )
    )


def step_and_reset(vector: Any, steps: int, seed: int, over: Any = None) -> tuple[list[Any], Any]:
    """Steps a vector environment like a collector, resetting episodes that ended.

    Returns copies of all observations, and which episodes ended.
    """
    rng, seen = np.random.default_rng(seed), list[Any]()
    over = np.ones(vector.num_envs, np.bool_) if over is None else over
    for _ in range(steps):
        seeds = rng.integers(1_000, size=vector.num_envs).tolist()
        seen.append((np.array(vector.begin(over, seeds)),) if over.any() else ())
        result = [np.array(part) for part in vector.advance(rng.integers(0, 4, vector.num_envs))]
        seen.append(tuple(result))
        over = result[2] | result[3]
    return seen, over


def assert_equal(first: list[Any], second: list[Any]) -> None:
    for one, two in zip(first, second, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_games_that_are_seeded_once_are_restored_and_continue_identically() -> None:
    """Restores within an episode, at its end, and many resets after the seed.

    The following episodes are also identical.
    """
    vector, other = make_counted_vector(), make_counted_vector()
    # The slots then have different numbers of steps.
    vector.begin(np.array([True, False]), [5, 0])
    record_steps(vector, draw_actions(4, 2))
    over = np.ones(2, np.bool_)
    for is_at_an_end in (False, True):
        _, over = step_and_reset(vector, 5, 0, over)
        while over.any() != is_at_an_end:
            _, over = step_and_reset(vector, 1, 0, over)
        saved = vector.save_episodes()
        restored = other.restore_episodes(saved)
        assert [one.is_reproduced for one in restored] == [True, True]
        seen, over_then = step_and_reset(vector, 60, 1, over.copy())
        assert_equal(seen, step_and_reset(other, 60, 1, over)[0])
        over = over_then
    assert saved[0]["since"] > 5
    vector.close()
    other.close()


def test_a_game_is_seeded_once_in_many_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeding a game loads its ROM again.

    Sticky actions, and games whose reset draws random numbers, need a seed for each episode.
    """
    import ale_py.vector_env as native

    loaded = list[int]()
    plain = native.AtariVectorEnv.reset

    def reset_and_record(self: Any, *, seed: Any = None, options: Any = None) -> Any:
        loaded.append(0 if seed is None else len(seed))
        return plain(self, seed=seed, options=options)

    monkeypatch.setattr(native.AtariVectorEnv, "reset", reset_and_record)
    for sticky, name, least, most in (
        (0.0, "ALE/Breakout-v5", 1, 1),
        (0.25, "ALE/Breakout-v5", 2, 99),
        (0.0, "ALE/Adventure-v5", 2, 99),
    ):
        loaded.clear()
        vector = make_counted_vector(1, sticky, name)
        step_and_reset(vector, 26, 0)
        assert least <= sum(loaded) <= most, (sticky, name, loaded)
        vector.close()


def test_an_evaluation_begins_each_game_from_its_seed() -> None:
    """A film repeats an episode of the evaluation from its seed."""
    vector = make_vector(make_spec(1, "native", kwargs={"repeat_action_probability": 0.0}))
    first = [np.array(vector.begin(np.array([True]), [seed])) for seed in (7, 8, 9)]
    again = [np.array(vector.begin(np.array([True]), [seed])) for seed in (9, 8, 7)][::-1]
    assert_equal([(one,) for one in first], [(one,) for one in again])
    vector.close()


def test_a_game_is_seeded_again_after_63_resets() -> None:
    """At most 63 resets must be repeated to restore an episode."""
    vector = make_counted_vector(1)
    for seed in range(70):
        vector.begin(np.array([True]), [seed])
    (saved,) = vector.save_episodes()
    assert (saved["seed"], saved["since"]) == (64, 5)
    vector.close()
