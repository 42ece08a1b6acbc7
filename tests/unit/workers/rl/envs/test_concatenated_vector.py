"""A concatenated vector environment steps each part as that part steps by itself."""

from typing import Any

import numpy as np
import pytest

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.envs import AtariPreprocessing, EnvDefinition
from workers.rl.envs.cart_pole import CartPoleVector
from workers.rl.envs.concatenated_vector import ConcatenatedVector, concatenate_vectors
from workers.rl.envs.factory import make_vector
from workers.rl.envs.learner_rewards import LearnerRewards, ReportingVector

EVERY = np.ones(4, np.bool_)


def make_vectors(env_id: str, **options: Any) -> list[Any]:
    return [make_vector(EnvDefinition(id=env_id, num_envs=2, **options), runs=2) for _ in range(2)]


@pytest.mark.parametrize(
    ("env_id", "kind", "options"),
    [
        ("CartPole-v1", CartPoleVector, {}),
        ("OddWalk-v0", ConcatenatedVector, {"kwargs": {"length": 7}}),
    ],
)
def test_each_vector_saves_the_episodes_that_the_whole_steps(
    env_id: str, kind: type, options: dict[str, Any]
) -> None:
    parts, alone = make_vectors(env_id, **options), make_vectors(env_id, **options)
    whole = concatenate_vectors(parts)
    assert isinstance(whole, kind)
    assert whole.num_envs == 4
    seen = whole.begin(EVERY, [1, 2, 3, 4])
    for part, seeds in zip((slice(0, 2), slice(2, 4)), ([1, 2], [3, 4]), strict=True):
        assert np.array_equal(seen[part], alone[part.start // 2].begin(EVERY[:2], seeds))
    for step in range(5):
        actions = np.array([step % 2, 1, 0, 1])
        stepped = whole.advance(actions)
        each = [
            vector.advance(own)
            for vector, own in zip(alone, (actions[:2], actions[2:]), strict=True)
        ]
        for column, own in zip(stepped, zip(*each, strict=True), strict=True):
            assert np.array_equal(column, np.concatenate(own))
    for part, own in zip(parts, alone, strict=True):
        saved, expected = part.save_episodes(), own.save_episodes()
        assert [one["hash"] for one in saved] == [one["hash"] for one in expected]
        assert all(one.is_reproduced for one in own.restore_episodes(saved))


def test_learner_rewards_are_concatenated() -> None:
    told = AtariPreprocessing(clip_rewards=True, terminal_on_life_loss=False)
    whole = concatenate_vectors(
        [
            ReportingVector(vector, told)
            for vector in make_vectors("OddWalk-v0", kwargs={"length": 3})
        ]
    )
    assert isinstance(whole, LearnerRewards)
    whole.begin(EVERY, [0] * 4)
    whole.advance(np.ones(4, np.int64))
    reward, terminated = whole.reported_step
    assert reward.shape == terminated.shape == (4,)
    assert np.abs(reward).max() <= 1.0
