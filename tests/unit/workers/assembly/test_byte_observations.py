"""Bytes are scaled by their bounds, and by 255 where a snapshot of an earlier format says so."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from palestra.contract.names import WORKER_IMPORTS
from tests.support import byte_envs
from tests.support.trainings import (
    TrainingAttempt,
    load_order_snapshot,
    make_definition,
    make_work_order,
)
from workers.assembly.training import fresh_agent, load_agent
from workers.core.errors import SnapshotUnreadableError
from workers.entrypoints.agent_algorithm import AgentAlgorithm
from workers.entrypoints.trainer import Trainer
from workers.snapshot import SnapshotConfig
from workers.snapshot.manifest import read_manifest

ID = f"{byte_envs.__name__}:Bits-v0"
HYPER = {"name": "ppo", "rollout_steps": 16, "minibatch_size": 8, "hidden_sizes": [8]}


@pytest.fixture(autouse=True)
def worker_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WORKER_IMPORTS, byte_envs.__name__)


def make_order(agent: str, **kwargs: str) -> Any:
    return make_work_order(
        make_definition(
            agent,
            env={"id": ID, "kwargs": kwargs},
            loop={"env_steps": 200, "epoch_env_steps": 100},
            evaluation={"every_env_steps": 200, "episodes": 1},
            snapshot={"every_env_steps": 100, "keep_last": 3},
        )
    )


@pytest.mark.parametrize("form", ["box", "dict", "tuple"])
@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_bits_train_alike_as_bytes_and_as_other_integers(
    tmp_path: Path, agent: str, form: str
) -> None:
    weights = {
        TrainingAttempt(make_order(agent, dtype=dtype, form=form), tmp_path / dtype)
        .run()
        .hash_weights()
        for dtype in ("uint8", "int8")
    }
    assert len(weights) == 1


@pytest.mark.parametrize("agent", ["dqn", "ppo", "a3c"])
def test_a_training_goes_on_with_the_scale_of_its_snapshot(tmp_path: Path, agent: str) -> None:
    order = make_order(agent)
    straight = TrainingAttempt(order, tmp_path / "straight", scales_by_bounds=False).run()
    by_bounds = TrainingAttempt(order, tmp_path / "bounds").run()
    assert straight.hash_weights() != by_bounds.hash_weights()
    snapshot, env_step = straight.get_snapshot("periodic")
    assert 0 < env_step < 200
    resumed = TrainingAttempt(order, tmp_path / "resumed", snapshot).run()
    assert resumed.exact
    assert resumed.hash_weights() == straight.hash_weights()
    assert read_manifest(find_last_snapshot(resumed)).scales_by_bounds is False
    assert read_manifest(find_last_snapshot(by_bounds)).scales_by_bounds is True


def find_last_snapshot(attempt: TrainingAttempt) -> Path:
    records = [record for record in attempt.dump_records() if record["type"] == "snapshot"]
    return attempt.snapshots / str(records[-1]["snapshot_id"])


def test_an_agent_acts_with_the_scale_of_its_snapshot(tmp_path: Path) -> None:
    order = make_order("ppo")
    trained = TrainingAttempt(order, tmp_path / "trained").run()
    snapshot = load_order_snapshot(order, find_last_snapshot(trained))
    earlier = dataclasses.replace(
        snapshot, manifest=snapshot.manifest.model_copy(update={"scales_by_bounds": False})
    )
    present = load_agent(order.definition, 7, snapshot, "cpu")
    former = load_agent(order.definition, 7, earlier, "cpu")
    every = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    expected = present.act(np.float32(every / 255), explore=False)
    assert former.act(every, explore=False).tolist() == expected.tolist()
    assert former.acting_module()(torch.from_numpy(every)).tolist() == expected.tolist()
    assert present.act(every, explore=False).tolist() != expected.tolist()


def test_networks_of_other_libraries_keep_the_space_of_the_environment() -> None:
    document = make_order("ppo").definition.model_dump(mode="json")
    document["agent"] = {"name": "sb3", "algorithm": "PPO", "parameters": {"n_steps": 64}}
    definition = make_work_order(document).definition
    agent: Any = fresh_agent(definition, 7, "cpu", scales_by_bounds=False)
    assert agent._model.observation_space == byte_envs.Bits().observation_space


def make_trainer(directory: Path, **options: Any) -> Trainer:
    """Returns a trainer; `options` are those of its algorithm."""
    trainer = Trainer(SnapshotConfig(directory), seed=1)
    trainer.setup(AgentAlgorithm(HYPER, ID, seed=1, **options), None)
    return trainer


def hash_weights(directory: Path) -> str:
    files = read_manifest(directory / "params").files
    return next(file.sha256 for file in files if file.name == "agent.safetensors")


def test_a_trainer_is_rebuilt_with_the_scale_of_an_earlier_snapshot(tmp_path: Path) -> None:
    make_trainer(tmp_path / "straight", scales_by_bounds=False).train(3, batch_size=32)
    make_trainer(tmp_path / "earlier", scales_by_bounds=False).train(2, batch_size=32)
    resumed = Trainer(SnapshotConfig(tmp_path / "resumed"))
    resumed.restore(tmp_path / "earlier")
    resumed.resume(n_epochs=3)
    assert hash_weights(tmp_path / "resumed") == hash_weights(tmp_path / "straight")


def test_a_trainer_of_another_scale_refuses_an_earlier_snapshot(tmp_path: Path) -> None:
    make_trainer(tmp_path / "earlier", scales_by_bounds=False).train(1, batch_size=32)
    trainer = make_trainer(tmp_path / "again")
    with pytest.raises(SnapshotUnreadableError, match="scales_by_bounds=False"):
        trainer.restore(tmp_path / "earlier")
