"""PFRL's A3C with `train_agent_async` in spawned processes; PFRL itself supports only
forked ones.
"""

import warnings
from pathlib import Path

import pytest

from workers.entrypoints.functional import read_history, train_agent_async

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("pfrl")
    from tests.support.async_a3c import make_a3c, make_cartpole


@pytest.mark.slow
@pytest.mark.processes
def test_a3c_trains_shares_and_goes_on(tmp_path: Path) -> None:
    options = {"make_agent": make_a3c, "eval_interval": 200, "eval_n_episodes": 1}
    before = make_a3c(0).shared_model.pi[0].weight.detach().clone()
    agent = train_agent_async(tmp_path, 2, make_cartpole, steps=400, **options)
    trained = agent.shared_model.pi[0].weight.detach().clone()
    assert not trained.equal(before)
    assert trained.equal(agent.model.pi[0].weight)
    train_agent_async(tmp_path, 2, make_cartpole, steps=600, resume="latest", **options)
    steps = [one["step"] for one in read_history(tmp_path)]
    assert steps[0] == 200
    assert 400 <= steps[1] <= 401
    assert 600 <= steps[-1] <= 601
