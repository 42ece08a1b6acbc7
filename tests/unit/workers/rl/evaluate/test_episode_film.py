"""Filming an evaluation: the chosen episode is repeated from its seed without side effects."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from palestra.contract.envs import EnvDefinition
from workers.core.errors import DefinitionError
from workers.core.rng import global_state
from workers.core.types import EvaluationResult
from workers.hooks.video import Choice, VideoHook, chosen_episode
from workers.rl.envs.factory import make_vector
from workers.rl.evaluate.episode_film import Film
from workers.rl.evaluate.vector_evaluator import (
    EvaluationBudget,
    VectorEvaluator,
    episode_seed,
    fixed_seed_rule,
    summarise,
)


class BalancingAgent:
    """An agent that pushes to the side to which the pole leans.

    Its episodes have different lengths.
    """

    def act(self, observation: Any, *, explore: bool) -> Any:
        assert not explore
        np.random.rand()  # noqa: NPY002
        return (observation[:, 2] > 0).astype(np.int64)

    def eval_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


AGENT: Any = BalancingAgent()


def test_the_film_shows_the_evaluated_episode() -> None:
    evaluator = VectorEvaluator(
        make_vector(EnvDefinition(id="CartPole-v1", num_envs=3)),
        AGENT,
        EvaluationBudget(episodes=5),
        fixed_seed_rule(11),
    )
    clock: Any = SimpleNamespace(env_steps=0, updates=0)
    result = evaluator.evaluate(clock)
    film = Film(gym.make("CartPole-v1", render_mode="rgb_array"), AGENT)
    before = global_state()
    for episode, length in enumerate(result.lengths):
        frames = list(film.frames(episode_seed(result.seed, episode), 1_000))
        assert len(frames) == length + 1
        assert (frames[0].dtype, frames[0].shape) == (np.uint8, (400, 600, 3))
    assert len(list(film.frames(episode_seed(result.seed, 0), 7))) == 7
    assert (film.fps, len(set(result.lengths)) > 1) == (50.0, True)
    after = global_state()
    assert (after["numpy"]["keys"] == before["numpy"]["keys"]).all()
    assert after["numpy"]["position"] == before["numpy"]["position"]
    film.close()


def test_observe_evaluation_is_called_for_each_step_of_a_film() -> None:
    class ListeningAgent(BalancingAgent):
        def __init__(self) -> None:
            self.resets: list[bool] = []

        def observe_evaluation(
            self, observation: Any, reward: Any, terminated: Any, reset: Any
        ) -> None:
            assert (observation.shape, reward.tolist(), terminated.shape) == ((1, 4), [1.0], (1,))
            self.resets += reset.tolist()

    agent: Any = ListeningAgent()
    film = Film(gym.make("CartPole-v1", render_mode="rgb_array"), agent)
    whole = len(list(film.frames(3, 1_000))) - 1
    assert agent.resets == [False] * (whole - 1) + [True]
    agent.resets.clear()
    assert len(list(film.frames(3, 7))) == 7
    assert agent.resets == [False] * 5 + [True]
    film.close()


def test_an_environment_without_pictures_is_refused() -> None:
    with pytest.raises(DefinitionError, match="rgb_array"):
        Film(gym.make("CartPole-v1"), AGENT)


@pytest.mark.parametrize(
    ("choice", "episode"), [("first", 0), ("best", 1), ("worst", 2), ("median", 0)]
)
def test_the_best_the_worst_or_the_first_episode_is_filmed(choice: Choice, episode: int) -> None:
    assert chosen_episode((5.0, 9.0, float("nan"), 9.0), choice) == episode


def test_every_nth_evaluation_is_filmed_and_counted_over_a_resume(tmp_path: Path) -> None:
    filmed: list[tuple[int, int, str]] = []
    told: list[Any] = []

    def hook() -> VideoHook:
        return VideoHook(
            lambda seed, episode, path: filmed.append((seed, episode, path.name)),
            tmp_path / "videos",
            every=2,
            choice="best",
            announce=lambda clock, scene: told.append((clock.env_steps, scene.episode_return)),
        )

    first, second = hook(), hook()
    for at in (10, 20, 30):
        first.on_evaluation(_make_view(at), _make_result(at))
    second.load_state_dict(first.state_dict())
    for at in (40, 50):
        second.on_evaluation(_make_view(at), _make_result(at))
    assert filmed == [(at, 1, f"{at:012d}-episode-1.mp4") for at in (10, 30, 50)]
    assert told == [(at, 2.0) for at in (10, 30, 50)]


def _make_view(env_steps: int) -> Any:
    return SimpleNamespace(clock=SimpleNamespace(env_steps=env_steps))


def _make_result(seed: int) -> EvaluationResult:
    return summarise([1.0, 2.0], [1, 1], seed)
