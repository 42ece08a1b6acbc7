"""Environments of Box2D and MuJoCo: a seed repeats an episode, and episodes can be restored."""

from pathlib import Path

import numpy as np
import pytest

from palestra.contract.envs import EnvDefinition
from workers.rl.envs.factory import make_rendered, make_vector

NAMES = ["LunarLander-v3", "HalfCheetah-v5", "Hopper-v5", "Pendulum-v1", "BipedalWalker-v3"]
BOTH = np.ones(2, np.bool_)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_the_episode_and_a_running_one_is_restored(name: str) -> None:
    vector, other = (make_vector(EnvDefinition(id=name, num_envs=2)) for _ in range(2))
    space = vector.single_action_space
    space.seed(1)
    chosen = [np.stack([np.asarray(space.sample()) for _ in range(2)]) for _ in range(40)]
    other.begin(BOTH, [1, 2])
    other.advance(chosen[0])
    first = [vector.begin(BOTH, [7, 8]).copy()] + [
        vector.advance(one)[0].copy() for one in chosen[:8]
    ]
    second = [other.begin(BOTH, [7, 8]).copy()] + [
        other.advance(one)[0].copy() for one in chosen[:8]
    ]
    assert np.array_equal(first, second)
    other.begin(BOTH, [3, 4])
    restored = other.restore_episodes(vector.save_episodes())
    assert all(one.is_reproduced for one in restored)
    # A slot that ends stays as it is in both vector environments.
    for one in chosen[8:]:
        assert all(
            np.array_equal(a, b)
            for a, b in zip(vector.advance(one), other.advance(one), strict=True)
        )
    vector.close()
    other.close()


def test_mujoco_warnings_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_vector(EnvDefinition(id="HalfCheetah-v5")).close()
    assert list(tmp_path.iterdir()) == []


def test_environments_of_box2d_can_be_filmed() -> None:
    env = make_rendered(EnvDefinition(id="LunarLander-v3"))
    env.reset(seed=1)
    assert np.asarray(env.render()).shape == (400, 600, 3)
    env.close()
