"""Agents for continuous actions in a pack learn and act as they do alone."""

import numpy as np
import pytest
import torch

from palestra.contract.agents import DdpgParameters, NafParameters, SacParameters, Td3Parameters
from tests.unit.workers.agents.agent_kit import experience, leaves
from tests.unit.workers.agents.continuous_kit import agent_of
from workers.agents import ddpg, naf, sac, td3
from workers.agents.pack import Pack
from workers.core.types import Experience

SMALL = {"batch_size": 16, "hidden_sizes": (16,), "learning_starts": 8, "buffer_size": 200}
CASES = {
    "sac": (sac.build, SacParameters(**SMALL)),
    "td3": (td3.build, Td3Parameters(**SMALL, policy_delay=3)),
    "ddpg": (ddpg.build, DdpgParameters(**SMALL)),
    "naf": (naf.build, NafParameters(**SMALL)),
}


def gathered(actor, seed: int) -> Experience:
    return experience(actor, 20, 2, np.random.default_rng(seed))


@pytest.mark.parametrize("name", CASES)
def test_a_pack_learns_what_each_learns_alone(name) -> None:
    build, hyper = CASES[name]
    alone, together = ([agent_of(build, hyper, seed=seed) for seed in (3, 1, 4)] for _ in range(2))
    pack = Pack(together, "eager")
    members = pack.members
    for updates in (4, 3):
        for index, (lone, member) in enumerate(zip(alone, members, strict=True)):
            lone.observe(gathered(lone, index))
            pack.observe(index, gathered(member, index))
        rows = np.random.default_rng(9).normal(size=(2, 3)).astype(np.float32)
        packed = pack.act(dict.fromkeys(range(3), rows))
        for index, lone in enumerate(alone):
            np.testing.assert_allclose(packed[index], lone.act(rows, explore=True), rtol=1e-3, atol=1e-4)
        for lone, member in zip(alone, members, strict=True):
            expected, report = lone.learn(updates), member.learn(updates)
            assert report.updates == expected.updates == updates
            torch.testing.assert_close(report.values, expected.values, rtol=1e-3, atol=1e-4)
    for lone, member in zip(alone, members, strict=True):
        one, other = leaves(lone.state_dict()), leaves(member.state_dict())
        assert one.keys() == other.keys()
        for path, leaf in one.items():
            if isinstance(leaf, torch.Tensor):
                torch.testing.assert_close(other[path], leaf, rtol=1e-3, atol=1e-4)
