"""Value fit and largest reward of rollout agents, alone, in packs and after a resume."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from palestra.contract.agents import A2cParameters, PpoParameters, ReinforceParameters
from tests.unit.workers.rl.agents.agent_kit import make_context, make_experience
from workers.rl.agents import a2c, ppo, reinforce
from workers.rl.agents.packs.pack import Pack
from workers.rl.agents.shells import rollout_statistics
from workers.rl.agents.shells.rollout_statistics import RolloutStatistics

NAMES = {"value/mean", "value/explained_variance", "reward/largest"}
BUILD: dict[str, Any] = {
    "ppo": lambda seed: ppo.build(
        PpoParameters(rollout_steps=8, minibatch_size=8), make_context(seed=seed)
    ),
    "a2c": lambda seed: a2c.build(A2cParameters(rollout_steps=8), make_context(seed=seed)),
}


def test_explained_variance_is_that_of_the_targets() -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(5.0, 3.0, 64).astype(np.float32)
    value = target + rng.normal(0.0, 1.0, 64).astype(np.float32)
    statistics = RolloutStatistics()
    assert statistics.metrics() == {}
    statistics.note_values(torch.from_numpy(target - value), torch.from_numpy(target))
    found = statistics.metrics()
    assert found["value/mean"] == pytest.approx(value.mean(), rel=1e-5)
    wanted = 1 - np.var(target - value) / np.var(target)
    assert found["value/explained_variance"] == pytest.approx(wanted, rel=1e-4)


def test_lists_and_tensors_of_an_accelerator_give_the_same() -> None:
    rng = np.random.default_rng(1)
    for target in (rng.normal(5.0, 3.0, 64).astype(np.float32), np.ones(8, np.float32)):
        advantage = rng.normal(0.0, 1.0, len(target)).astype(np.float32)
        arrays = rollout_statistics._measure_arrays(advantage, target)
        lists = rollout_statistics._measure_lists(advantage.tolist(), target.tolist())
        assert lists == pytest.approx(arrays, rel=1e-4)
        tensors = rollout_statistics._measure_tensors(
            torch.from_numpy(advantage), torch.from_numpy(target)
        )
        assert arrays == pytest.approx({name: one.item() for name, one in tensors.items()}, 1e-4)


def test_equal_targets_explain_nothing() -> None:
    statistics = RolloutStatistics()
    statistics.note_values(torch.linspace(0, 1, 8), torch.ones(8))
    assert statistics.metrics()["value/explained_variance"] == 0.0


def test_the_largest_reward_is_of_all_rollouts_and_survives_what_is_no_number() -> None:
    statistics = RolloutStatistics()
    for rewards in ([[1.0, -7.0]], [[2.0, 3.0]], [[math.nan, 1.0]]):
        statistics.note_rewards(np.array(rewards, np.float32))
    statistics.note_rewards(np.array([math.nan, *[0.5] * 100], np.float32))
    assert statistics.metrics() == {"reward/largest": 7.0}
    restored = RolloutStatistics()
    restored.load_state_dict(statistics.state_dict())
    restored.note_rewards(np.array([[6.0]], np.float32))
    assert restored.metrics() == {"reward/largest": 7.0}
    restored.load_state_dict({})
    assert restored.metrics() == {}


@pytest.mark.parametrize("name", BUILD)
def test_metrics_are_of_the_last_rollout_and_are_restored(name: str) -> None:
    agent, rng = BUILD[name](3), np.random.default_rng(0)
    assert set(agent.metrics()) == {"memory/size"}
    for _ in range(2):
        agent.observe(make_experience(agent, 8, 2, rng))
        rewards = np.abs(agent.memory.contents()["reward"]).max()
        state = agent.learning_state
        batch = agent.algorithm.prepare(state, agent.memory.contents())
        agent.learn(100)
    found = dict(agent.metrics())
    value = (batch.value_target - batch.advantage).mean()
    assert found["value/mean"] == pytest.approx(float(value), rel=1e-5)
    assert found["reward/largest"] >= rewards > 0
    again = BUILD[name](9)
    again.load_state_dict(agent.state_dict())
    assert {one: again.metrics()[one] for one in NAMES} == {one: found[one] for one in NAMES}


@pytest.mark.parametrize("name", BUILD)
def test_each_member_of_a_pack_has_its_own(name: str) -> None:
    together, alone = ([BUILD[name](seed) for seed in (3, 1, 4)] for _ in range(2))
    pack = Pack(together, "eager")
    for index, (member, single) in enumerate(zip(together, alone, strict=True)):
        rng = np.random.default_rng(index)
        gathered = make_experience(single, 8, 2, rng)
        single.observe(gathered)
        member.observe(gathered)
        single.learn(100)
    for member in pack.members:
        member.learn(100)
    for member, single in zip(pack.members, alone, strict=True):
        assert dict(member.metrics()) == pytest.approx(dict(single.metrics()), rel=1e-4)
    assert len({member.metrics()["value/mean"] for member in pack.members}) == 3


def test_reinforce_has_a_value_fit_only_with_its_baseline() -> None:
    for baseline in (True, False):
        agent = reinforce.build(ReinforceParameters(episodes=1, baseline=baseline), make_context())
        gathered = make_experience(agent, 8, 2, np.random.default_rng(0))
        gathered.terminated[-1] = True
        gathered.truncated[-1] = False
        agent.observe(gathered)
        assert agent.learn(1).updates == 1
        assert ("value/mean" in agent.metrics()) == baseline
        assert agent.metrics()["reward/largest"] > 0
