"""The largest |reward| of a replay memory, with lanes and rows that are overwritten."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.rng import derive_generator
from workers.rl.memory.largest_reward import LargestReward, find_largest_magnitude
from workers.rl.memory.pack_memory import SharedReplay
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import UniformRule
from workers.rl.memory.transitions import ReplaySpec

REWARDS = st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=12)


@given(steps=st.integers(1, 5), rewards=REWARDS, every=st.integers(1, 4))
def test_the_maximum_is_of_all_rows_that_a_call_could_see(
    steps: int, rewards: list[float], every: int
) -> None:
    ring = np.zeros((steps, 1), np.float32)
    largest, seen, wanted = LargestReward(ring), 0, 0.0
    for written, reward in enumerate(rewards, 1):
        ring[(written - 1) % steps] = reward
        if written % every == 0 or written == len(rewards):
            visible = rewards[max(seen, written - steps) : written]
            wanted = max(wanted, *map(abs, visible))
            seen = written
            assert largest.measure(written) == wanted


@pytest.mark.parametrize("count", [2, 200])
def test_a_reward_that_is_no_number_hides_no_other(count: int) -> None:
    for place in range(2):
        rewards = np.ones((count, 1), np.float32)
        rewards[place] = np.nan
        rewards[1 - place] = -7.0
        assert find_largest_magnitude(rewards) == 7.0
    assert find_largest_magnitude(np.full((count, 1), np.nan)) == 0.0
    assert find_largest_magnitude(np.zeros((0, 1))) == 0.0


def test_each_lane_of_a_pack_measures_its_own_rewards() -> None:
    spec = ReplaySpec(capacity=8, num_envs=2, observation=((1,), np.float32), action=((), np.int64))
    memories = [Replay(spec, UniformRule(derive_generator(seed, "memory"))) for seed in range(2)]
    shared = SharedReplay(memories)
    assert [lane.measure_largest_reward() for lane in shared.lanes] == [0.0, 0.0]
    rewards = np.array([[1.0, -5.0, 2.0, 3.0]], np.float32)
    observation, flags = np.zeros((1, 4, 1), np.float32), np.zeros((1, 4), np.bool_)
    shared.extend((observation, np.zeros((1, 4), np.int64), rewards, observation, flags, flags))
    assert [lane.measure_largest_reward() for lane in shared.lanes] == [5.0, 3.0]
