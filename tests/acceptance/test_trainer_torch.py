"""Rows of garage's TFTrainer: a trainer with a device, a precision and lazy parameters."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tests.acceptance import (
    test_trainer_collecting,
    test_trainer_running,
    test_trainer_snapshots,
    trainer_kit,
)
from tests.support.garage_kit import CountingAlgo, CountingEnv
from workers.entrypoints.trainer import NotSetupError, TFTrainer, TorchTrainer, Trainer
from workers.entrypoints.trainer_parts.torch_session import TorchSession
from workers.snapshot import SnapshotConfig


class LazyAlgo(CountingAlgo):
    """An algorithm with lazy modules, one of which also takes an action, and a regular module."""

    def __init__(self) -> None:
        super().__init__(None)
        self.value_function = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 1))
        self.q_function = Quality()
        self.ready = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))


class Quality(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LazyLinear(3)

    def forward(self, observation: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.cat((observation, action), 1))  # type: ignore[no-any-return]


class BoxEnv(CountingEnv):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = gym.spaces.Box(-1, 1, (3,))


def count_lazy_parameters(algo: Any) -> int:
    return sum(
        is_lazy(one)
        for part in vars(algo).values()
        if isinstance(part, nn.Module)
        for one in part.parameters()
    )


@pytest.fixture
def defaults() -> Iterator[tuple[torch.device, torch.dtype]]:
    """Returns torch's default device and dtype, which must be the same after the test."""
    before = (torch.get_default_device(), torch.get_default_dtype())
    yield before
    assert (torch.get_default_device(), torch.get_default_dtype()) == before


def test_G43_context(tmp_path: Path, defaults: tuple[torch.device, torch.dtype]) -> None:
    config = SnapshotConfig(tmp_path)
    assert TFTrainer is TorchTrainer
    assert issubclass(TFTrainer, Trainer)
    with TFTrainer(config, TorchSession("meta", torch.float64)):
        assert torch.zeros(1).device.type == "meta"
        with TFTrainer(config, sess=torch.float16):
            assert (torch.zeros(1).device.type, torch.zeros(1).dtype) == ("meta", torch.float16)
        assert torch.get_default_dtype() == torch.float64
    for sess in (None, "cpu", torch.device("cpu")):
        with TFTrainer(config, sess) as trainer:
            assert torch.zeros(1).device == defaults[0]
            trainer.setup(CountingAlgo(CountingEnv()), None)
            trainer.train(1, 5)
    with pytest.raises(RuntimeError, match="body"), TFTrainer(config, "meta"):
        raise RuntimeError("body")
    with pytest.raises(TypeError, match="sess must be"):
        TFTrainer(config, 3)
    TFTrainer().setup(CountingAlgo(None), None)


def test_G44_setup(tmp_path: Path) -> None:
    algo = LazyAlgo()
    loaded = {"layer.weight": torch.full((3, 5), 0.5), "layer.bias": torch.ones(3)}
    algo.q_function.load_state_dict(loaded)
    assert count_lazy_parameters(algo) == 4
    trainer = TorchTrainer(SnapshotConfig(tmp_path))
    trainer.setup(algo, BoxEnv())
    assert count_lazy_parameters(algo) == 0
    assert algo.value_function[0].weight.shape == (4, 2)
    for name, tensor in loaded.items():
        assert torch.equal(algo.q_function.state_dict()[name], tensor)
    trainer.train(1, 5)
    other = LazyAlgo()
    with pytest.raises(ValueError, match=r"algo.value_function has parameters without a shape"):
        TorchTrainer(SnapshotConfig(tmp_path / "other")).setup(other, None)


def test_G45_initialize_tf_vars(tmp_path: Path) -> None:
    trainer = TorchTrainer(SnapshotConfig(tmp_path))
    with pytest.raises(NotSetupError, match="setup"):
        trainer.initialize_tf_vars()
    algo = LazyAlgo()
    trainer.setup(algo, BoxEnv())
    algo.late = nn.Sequential(algo.ready, nn.LazyLinear(2))
    parts = {
        name: part
        for name, part in vars(algo).items()
        if isinstance(part, nn.Module) and name != "late"
    }
    before = {
        name: {key: one.clone() for key, one in part.state_dict().items()}
        for name, part in parts.items()
    }
    trainer.initialize_tf_vars()
    first = algo.late[1].weight.detach().clone()
    trainer.initialize_tf_vars()
    assert torch.equal(first, algo.late[1].weight)
    assert algo.late.training
    assert algo.ready.training
    for name, part in parts.items():
        for key, tensor in part.state_dict().items():
            assert torch.equal(tensor, before[name][key]), (name, key)


def test_G46_both_trainers() -> None:
    """The rows G5 to G41 run for both kinds of trainer by the parameter `kind`.

    Rows without the parameter do not depend on the kind.
    """
    apart = {f"G{number}" for number in (1, 2, 3, 4, 42, 47, 48)}
    assert (Trainer, TorchTrainer) == trainer_kit.KINDS
    for module in (test_trainer_collecting, test_trainer_running, test_trainer_snapshots):
        for name, test in inspect.getmembers(module, inspect.isfunction):
            row = name.removeprefix("test_").split("_")[0]
            if row.startswith("G") and row not in apart:
                assert "kind" in inspect.signature(test).parameters, name
    seed_names = {
        "obtain_episodes",
        "obtain_samples",
        "save",
        "restore",
        "log_diagnostics",
        "train",
        "step_epochs",
        "resume",
        "get_env_copy",
    }
    for name in (*seed_names, "total_env_steps"):
        assert getattr(TorchTrainer, name) is getattr(Trainer, name)
