"""The adapter of external agents (PFRL protocol)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.pfrl_agents import Learner, ScriptedAgent, ScriptedBatch
from tests.support.recording_env import EpisodeLengthsEnv
from workers.core.types import Experience, PartFilesDirectory
from workers.entrypoints import functional
from workers.rl.agents.pfrl_adapter import ExternalAgent


def make_experience(rows: np.ndarray, reward: Any, terminated: Any, truncated: Any) -> Experience:
    flags = (np.array([terminated], np.bool_), np.array([truncated], np.bool_))
    return Experience(
        rows[None],
        np.zeros((1, len(rows)), np.int64),
        np.array([reward], np.float64),
        *flags,
        rows[None],
        env_steps=len(rows),
    )


@pytest.mark.parametrize("name", ["act", "observe", "save", "load", "get_statistics", "eval_mode"])
def test_a_missing_method_is_named(name: str) -> None:
    agent = ScriptedAgent()
    setattr(agent, name, None)
    with pytest.raises(TypeError, match=rf"ScriptedAgent has no method {name};"):
        ExternalAgent(agent, num_envs=1, is_batch=False)


def test_a_batch_needs_batch_methods() -> None:
    with pytest.raises(TypeError, match="no method batch_act, batch_observe"):
        ExternalAgent(ScriptedAgent(), num_envs=2, is_batch=True)
    with pytest.raises(ValueError, match="num_envs is 2"):
        ExternalAgent(ScriptedAgent(), num_envs=2, is_batch=False)


def test_observations_are_copies_and_each_is_kept_once() -> None:
    agent = ScriptedAgent()
    adapter = ExternalAgent(agent, num_envs=1, is_batch=False)
    rows = np.array([[1.0, 2.0]], np.float32)
    adapter.act(rows, explore=True)
    adapter.observe(make_experience(rows, [0.1], [False], [False]))
    rows[:] = 9.0
    adapter.act(rows, explore=True)
    first, seen, second = agent.calls
    assert first[2].tolist() == seen[2].tolist() == [1.0, 2.0]
    assert second[2] is seen[2]


def test_after_an_episode_end_the_first_observation_of_the_next_is_used() -> None:
    agent = ScriptedBatch()
    adapter = ExternalAgent(agent, num_envs=3, is_batch=True)
    rows = np.array([[1.0], [2.0], [3.0]])
    adapter.act(rows, explore=True)
    adapter.observe(
        make_experience(rows, [0.0, 0.0, 0.0], [True, False, False], [False, True, False])
    )
    adapter.act(rows + 10, explore=True)
    assert [row.tolist() for row in agent.calls[-1][2]] == [[11.0], [12.0], [3.0]]


def test_rewards_and_flags_are_exact() -> None:
    agent = ScriptedAgent()
    adapter = ExternalAgent(agent, num_envs=1, is_batch=False)
    adapter.observe(make_experience(np.zeros((1, 2)), [0.1], [False], [True]))
    _, _, _, reward, done, reset = agent.calls[-1]
    assert (reward, done, reset) == (0.1, False, True)
    assert isinstance(reward, float)


def test_the_state_of_the_object_is_restored() -> None:
    source, target = Learner(), Learner(seed=5)
    for _ in range(7):
        source.observe(source.rng.normal(size=4), 1.0, done=False, reset=False)
    state = ExternalAgent(source, num_envs=1, is_batch=False).state_dict()
    ExternalAgent(target, num_envs=1, is_batch=False).load_state_dict(
        {**state, "files": PartFilesDirectory("")}
    )
    assert target.t == 7
    assert target.weights.tolist() == source.weights.tolist()
    assert target.rng.random() == source.rng.random()


def test_without_state_its_files_are_loaded(tmp_path: Path) -> None:
    source = ScriptedAgent()
    source.updates, source.t = 5, 9
    state = ExternalAgent(source, num_envs=1, is_batch=False).state_dict()
    state["files"].save(str(tmp_path))
    target = ScriptedAgent()
    ExternalAgent(target, num_envs=1, is_batch=False).load_state_dict(
        {**state, "files": PartFilesDirectory(str(tmp_path))}
    )
    assert (target.updates, target.t) == (5, 9)


def test_checkpoints_contain_the_files_of_the_agents_save_by_default(
    tmp_path: Path,
) -> None:
    """PFRL's agents save their memory only in `save_snapshot`.

    Checkpoints contain it only on request.
    """

    class AgentWithMemory(ScriptedAgent):
        def save_snapshot(self, dirname: str) -> None:
            self.save(dirname)
            (Path(dirname) / "memory.bin").write_bytes(b"1")

        def load_snapshot(self, dirname: str) -> None:
            self.load(dirname)

    for wanted in ({}, {"save_memory": True}):
        outdir = tmp_path / str(len(wanted))
        functional.train_agent(
            AgentWithMemory(), EpisodeLengthsEnv((3,)), 4, outdir, checkpoint_freq=2, **wanted
        )
        assert [
            (outdir / name / "memory.bin").exists() for name in ("2_checkpoint", "4_finish")
        ] == [bool(wanted)] * 2


@pytest.mark.parametrize(
    ("save_memory", "names"), [(True, ["memory.bin", "model.txt"]), (False, ["model.txt"])]
)
def test_a_snapshot_of_its_own_is_used(tmp_path: Path, save_memory: bool, names: list[str]) -> None:
    class AgentWithSnapshot(ScriptedAgent):
        remembered = 0

        def save_snapshot(self, dirname: str) -> None:
            self.save(dirname)
            (Path(dirname) / "memory.bin").write_bytes(b"1")

        def load_snapshot(self, dirname: str) -> None:
            self.remembered = len((Path(dirname) / "memory.bin").read_bytes())

    adapter = ExternalAgent(
        AgentWithSnapshot(), num_envs=1, is_batch=False, save_memory=save_memory
    )
    state = adapter.state_dict()
    state["files"].save(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    adapter.load_state_dict({**state, "files": PartFilesDirectory(str(tmp_path))})
    assert adapter.wrapped.remembered == save_memory


class TorchAgent(ScriptedAgent):
    """An agent with networks and an optimiser, saved as PFRL saves them."""

    def __init__(self) -> None:
        super().__init__()
        self.model, self.target = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.5)

    def save(self, dirname: str) -> None:
        for name in ("model", "target", "optimizer"):
            torch.save(getattr(self, name).state_dict(), Path(dirname) / f"{name}.pt")


@pytest.mark.parametrize(
    ("parts", "restored"), [(None, (True, True)), (("target",), (False, True))]
)
def test_a_snapshot_holds_the_parts_of_the_agent(
    tmp_path: Path, parts: Any, restored: tuple[bool, bool]
) -> None:
    source, target = TorchAgent(), TorchAgent()
    source.optimizer.param_groups[0]["lr"] = 0.25
    source.save(str(tmp_path))
    ExternalAgent(target, num_envs=1, is_batch=False).load_parts(
        {"files": PartFilesDirectory(str(tmp_path))}, parts
    )
    pairs = ((source.model, target.model), (source.target, target.target))
    assert tuple(torch.equal(one.weight, other.weight) for one, other in pairs) == restored
    assert target.optimizer.param_groups[0]["lr"] == 0.5
    with pytest.raises(ValueError, match="'nothing' is no attribute"):
        ExternalAgent(target, num_envs=1, is_batch=False).load_parts(
            {"files": PartFilesDirectory(str(tmp_path))}, ("nothing",)
        )


def test_learning_rate_is_that_of_the_optimiser() -> None:
    agent = TorchAgent()
    adapter = ExternalAgent(agent, num_envs=1, is_batch=False)
    adapter.learning_rate = 0.125
    assert agent.optimizer.param_groups[0]["lr"] == adapter.learning_rate == 0.125


def test_a_count_within_rollouts_is_not_changed() -> None:
    agent = ScriptedAgent()
    adapter = ExternalAgent(agent, num_envs=1, is_batch=False)
    adapter.step = 5
    assert agent.t == adapter.step == 5
    agent.t_start = 5  # type: ignore[attr-defined]
    adapter.step = 9
    assert (agent.t, adapter.step) == (5, None)
    assert "t" not in adapter.state_dict()


def test_statistics_become_gauges() -> None:
    adapter = ExternalAgent(ScriptedAgent(), num_envs=1, is_batch=False)
    assert adapter.metrics() == {"agent/updates": 0.0}
