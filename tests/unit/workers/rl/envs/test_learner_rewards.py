"""Separate rewards for the learner, which leave the recorded returns of the game unchanged."""

from typing import Any

import numpy as np
import pytest

from palestra.contract.envs import AtariPreprocessing
from tests.support.recording_env import EpisodeLengthsEnv
from workers.core.types import CollectPlan
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.caller_envs import as_vector
from workers.rl.envs.learner_rewards import ReportingVector


class NoopAgent:
    """An agent that always chooses action 0."""

    def act(self, observation: Any, *, explore: bool) -> Any:
        assert explore
        return np.zeros(len(observation), np.int64)


class Ale:
    """A fake game of 7 frames that loses a life at each third frame."""

    def __init__(self, line: EpisodeLengthsEnv) -> None:
        self.line = line

    def lives(self) -> int:
        return 3 - self.line.at // 3


def make_game(reward: float) -> Any:
    line: Any = EpisodeLengthsEnv((7,), reward)
    line.ale = Ale(line)
    return line


def collect_experience(plan: CollectPlan, **told: Any) -> Any:
    env = ReportingVector(as_vector([make_game(5.0), make_game(-0.5)]), AtariPreprocessing(**told))
    return VectorCollector(env, NoopAgent(), seed=1).collect(plan)


@pytest.mark.parametrize(
    "plan", [CollectPlan(vector_steps=14), CollectPlan(env_steps=28, needs_whole_episodes=True)]
)
def test_the_learner_gets_clipped_rewards_and_life_losses_and_returns_stay_raw(
    plan: CollectPlan,
) -> None:
    experience = collect_experience(plan, terminal_on_life_loss=True)
    assert experience.reward.tolist() == [[1.0, -0.5]] * 14
    assert np.flatnonzero(experience.terminated[:, 0]).tolist() == [2, 5, 6, 9, 12, 13]
    assert not experience.truncated.any()
    assert [(end.episode_return, end.episode_length) for end in experience.episodes] == [
        (35.0, 7),
        (-3.5, 7),
    ] * 2


def test_clipping_or_life_losses_can_be_left_out() -> None:
    experience = collect_experience(CollectPlan(vector_steps=14), clip_rewards=False)
    assert experience.reward.tolist() == [[5.0, -0.5]] * 14
    assert np.flatnonzero(experience.terminated[:, 0]).tolist() == [6, 13]


def test_a_life_lost_before_a_resume_is_not_lost_again() -> None:
    first, second = (
        ReportingVector(
            as_vector([make_game(1.0), make_game(1.0)]),
            AtariPreprocessing(terminal_on_life_loss=True),
        )
        for _ in range(2)
    )
    first.begin(np.ones(2, np.bool_), [1, 2])
    for _ in range(3):
        first.advance(np.zeros(2, np.int64))
    assert first.reported_step[1].tolist() == [True, True]
    assert all(one.is_reproduced for one in second.restore_episodes(first.save_episodes()))
    second.advance(np.zeros(2, np.int64))
    assert second.reported_step[1].tolist() == [False, False]
