import copy

import numpy as np
import pytest

from tests.support.replay_streams import Chunk
from workers.core.rng import derive_generator
from workers.rl.memory.hindsight_replay import Goals, Hindsight
from workers.rl.memory.sampling_rules import PrioritizedRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec

# An observation is (environment, episode, step of the episode, goal achieved x2, goal desired x2).
ACHIEVED, DESIRED = slice(3, 5), [5, 6]


def compute_goal_reward(achieved, desired):
    return -(np.abs(achieved - desired).max(1) > 0.5).astype(np.float32)


def make_spec(steps: int, num_envs: int, **more) -> ReplaySpec:
    right = {"observation": ((7,), np.float32), "action": ((), np.int64), "gamma": 0.9}
    return ReplaySpec(capacity=steps * num_envs, num_envs=num_envs, **{**right, **more})


def make_memory(
    steps: int,
    num_envs: int,
    *,
    seed: int = 0,
    compute_reward=compute_goal_reward,
    ratio: float = 4.0,
    rule=UniformRule,
) -> Hindsight:
    goals = Goals(achieved=ACHIEVED, desired=DESIRED, compute_reward=compute_reward, ratio=ratio)
    return Hindsight(make_spec(steps, num_envs), rule(derive_generator(seed, "memory")), goals)


class GoalStream:
    """Episodes whose achieved goal is (episode, step) and whose desired goal is never reached."""

    def __init__(self, seed: int, num_envs: int, end: float = 0.2) -> None:
        self.generator, self.num_envs, self.end = np.random.default_rng(seed), num_envs, end
        self.episode, self.step = np.zeros(num_envs), np.zeros(num_envs)

    def get_observation(self):
        columns = [np.arange(self.num_envs), self.episode, self.step, self.episode, self.step]
        return np.stack([*columns, *[np.full(self.num_envs, -1.0)] * 2], 1).astype(np.float32)

    def draw_chunk(self, steps: int) -> Chunk:
        lead = (steps, self.num_envs)
        observation, successor, ends = (
            np.zeros((*lead, 7), np.float32),
            np.zeros((*lead, 7), np.float32),
            self.generator.random(lead) < self.end,
        )
        for t in range(steps):
            observation[t] = self.get_observation()
            self.step += 1
            successor[t] = self.get_observation()
            self.episode, self.step = self.episode + ends[t], np.where(ends[t], 0, self.step)
        nothing = np.zeros(lead, bool)
        return Chunk(
            observation, np.zeros(lead, int), np.full(lead, -1.0), successor, nothing, ends
        )


@pytest.mark.parametrize("rule", [UniformRule, PrioritizedRule])
@pytest.mark.parametrize(
    ("steps", "pieces"), [(20, (15,)), (20, (7, 30, 5, 1)), (6, (3, 4, 12, 2)), (1, (1, 5))]
)
def test_goals_come_from_the_same_episode_and_not_from_before(rule, steps, pieces) -> None:
    replay, stream = make_memory(steps, 3, rule=rule), GoalStream(1, 3)
    last: dict[tuple[int, int], int] = {}
    for piece in pieces:
        chunk = stream.draw_chunk(piece)
        replay.extend(*chunk.columns)
        for row in chunk.next_observation.reshape(-1, 7):
            last[int(row[0]), int(row[1])] = int(row[2])
        sample = replay.sample(10, 32)
        assert np.array_equal(sample.observation[..., 5:], sample.next_observation[..., 5:])
        columns = (
            sample.observation.reshape(-1, 7),
            sample.next_observation.reshape(-1, 7),
            sample.reward.ravel(),
        )
        for before, after, reward in zip(*columns, strict=True):
            b, episode, step, *_, goal_episode, goal_step = before.tolist()
            if goal_episode == -1:
                assert reward == -1
                continue
            assert goal_episode == episode
            assert step + 1 <= goal_step <= last[int(b), int(episode)]
            assert reward == (0 if goal_step == after[2] else -1)


def test_every_later_row_is_as_likely_and_the_ratio_is_kept() -> None:
    replay, stream = make_memory(20, 1, ratio=3.0), GoalStream(0, 1, end=0.0)
    replay.extend(*stream.draw_chunk(10).columns)
    sample = replay.sample(200, 100)
    goal, step = sample.observation[..., 6].ravel(), sample.observation[..., 2].ravel()
    assert (goal >= 0).mean() == pytest.approx(0.75, abs=0.01)
    later = goal[(goal >= 0) & (step == 4)].astype(int)
    assert np.bincount(later, minlength=11)[5:] / len(later) == pytest.approx([1 / 6] * 6, abs=0.04)


def test_termination_follows_the_goal_where_the_reward_says_so() -> None:
    def reward(achieved, desired):
        value = compute_goal_reward(achieved, desired)
        return value, value == 0

    replay = make_memory(20, 1, compute_reward=reward)
    replay.extend(*GoalStream(0, 1).draw_chunk(20).columns)
    sample = replay.sample(5, 64)
    assert np.array_equal(sample.discount == 0, sample.reward == 0)
    assert set(sample.discount.ravel().tolist()) == {0.0, float(np.float32(0.9))}


def test_stored_goals_are_not_relabelled() -> None:
    replay = make_memory(20, 2)
    replay.extend(*GoalStream(0, 2).draw_chunk(20).columns)
    before = copy.deepcopy(replay.state_dict()["rows"])
    replay.sample(4, 64)
    assert all(
        np.array_equal(column, before[name]) for name, column in replay.state_dict()["rows"].items()
    )


@pytest.mark.parametrize("before", [4, 33])
def test_a_loaded_memory_goes_on_exactly(before) -> None:
    first, second, stream = make_memory(10, 2), make_memory(10, 2, seed=3), GoalStream(5, 2)
    first.extend(*stream.draw_chunk(before).columns)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(6):
        for replay_sample in zip(first.sample(2, 16), second.sample(2, 16), strict=True):
            assert np.array_equal(*replay_sample)
        chunk = stream.draw_chunk(3)
        first.extend(*chunk.columns)
        second.extend(*chunk.columns)


def test_an_empty_memory_can_be_loaded() -> None:
    make_memory(10, 2).load_state_dict(make_memory(10, 2).state_dict())


@pytest.mark.parametrize(
    ("spec", "goals", "message"),
    [
        ({"n_step": 3}, {}, "n_step 1"),
        ({"observation": ((2, 7), np.float32)}, {}, "float32 vectors"),
        ({"observation": ((7,), np.float64)}, {}, "float32 vectors"),
        ({}, {"achieved": slice(0, 3)}, "as many entries"),
        ({}, {"achieved": [0, 9]}, "do not lie within"),
        ({}, {"ratio": -1}, "ratio"),
    ],
)
def test_specs_and_goals_that_do_not_fit_are_refused(spec, goals, message) -> None:
    right = {"achieved": ACHIEVED, "desired": DESIRED, "compute_reward": compute_goal_reward}
    with pytest.raises(ValueError, match=message):
        Hindsight(
            make_spec(4, 1, **spec),
            UniformRule(derive_generator(0, "memory")),
            Goals(**{**right, **goals}),
        )
