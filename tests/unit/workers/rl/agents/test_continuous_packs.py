"""Agents for continuous actions learn and act in a pack as they do singly."""

import numpy as np
import pytest
import torch

from palestra.contract.agents import DdpgParameters, NafParameters, SacParameters, Td3Parameters
from tests.unit.workers.rl.agents.agent_kit import list_leaves, make_experience
from tests.unit.workers.rl.agents.continuous_kit import make_replay_agent
from workers.rl.agents import ddpg, naf, sac, td3
from workers.rl.agents.packs.pack import Pack

SMALL = {"batch_size": 16, "hidden_sizes": (16,), "learning_starts": 8, "buffer_size": 200}
CASES = {
    "sac": (sac.build, SacParameters(**SMALL)),
    "td3": (td3.build, Td3Parameters(**SMALL, policy_delay=3)),
    "ddpg": (ddpg.build, DdpgParameters(**SMALL)),
    "naf": (naf.build, NafParameters(**SMALL)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pack_learns_the_same_as_single_agents(name) -> None:
    build, hyper = CASES[name]
    alone, together = (
        [make_replay_agent(build, hyper, seed=seed) for seed in (3, 1, 4)] for _ in range(2)
    )
    pack = Pack(together, "eager")
    members = pack.members
    rng = np.random.default_rng(9)
    for updates in (4, 3):
        gathered = make_experience(pack, 20, 6, rng)
        for index, lone in enumerate(alone):
            own = gathered.columns(slice(2 * index, 2 * index + 2))
            actions = np.stack([lone.act(row, explore=True) for row in own.observation])
            np.testing.assert_allclose(own.action, actions, rtol=1e-3, atol=1e-4)
            lone.observe(own)
        pack.observe(gathered)
        for lone, member in zip(alone, members, strict=True):
            expected, report = lone.learn(updates), member.learn(updates)
            assert report.updates == expected.updates == updates
            np.testing.assert_allclose(report.values, expected.values, rtol=1e-3, atol=1e-4)
    for lone, member in zip(alone, members, strict=True):
        one, other = list_leaves(lone.state_dict()), list_leaves(member.state_dict())
        assert one.keys() == other.keys()
        for path, leaf in one.items():
            if isinstance(leaf, torch.Tensor):
                torch.testing.assert_close(other[path], leaf, rtol=1e-3, atol=1e-4)
