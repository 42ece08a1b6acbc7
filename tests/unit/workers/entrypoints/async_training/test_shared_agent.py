"""Tensors that several processes share, and objects that are sent to them."""

import pickle
from multiprocessing import context
from typing import Any

import pytest
import torch

from tests.support.async_fakes import ScriptedEnv
from tests.support.async_torch import CountingAgent
from workers.entrypoints.async_training.spawn_pickling import (
    PickledValue,
    check_picklable,
    pickling_error,
)
from workers.entrypoints.async_training.training_process import _single_vector
from workers.rl.agents.shared_tensors import adopt, share


class TorchFreeAgent:
    """An agent without torch objects."""


class UndeclaredAgent:
    """An agent that does not declare which attributes are shared."""

    def __init__(self) -> None:
        self.net = torch.nn.BatchNorm1d(2)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.level = torch.zeros(3)
        self.name = "bare"


class SyncingAgent(CountingAgent):
    """An agent that copies the shared parameters into its private network."""

    def sync_parameters(self) -> None:
        with torch.no_grad():
            self.private.weight.copy_(self.model.weight)


class InvalidSharedAgent(CountingAgent):
    """An agent that declares a shared attribute which cannot be shared."""

    shared_attributes = ("t",)


def test_an_adopting_agent_uses_the_same_memory() -> None:
    host, other = CountingAgent(0), CountingAgent(1)
    weight = host.model.weight
    adopt(other, share(host))
    assert host.model.weight is weight
    host.observe([0.0, 0.0], 0.0, done=False, reset=False)
    other.observe([0.0, 0.0], 0.0, done=False, reset=False)
    assert weight[0].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert other.optimizer.state[other.model.weight]["momentum_buffer"][0].tolist() == [
        1.0,
        1.0,
        0.0,
        0.0,
    ]
    assert host.private.weight[0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert not host.private.weight.is_shared()


def test_an_optimiser_of_an_adopting_agent_updates_the_shared_parameters() -> None:
    host, other = CountingAgent(0), CountingAgent(1)
    adopt(other, share(host))
    torch.optim.SGD(other.model.parameters(), lr=1.0)
    other.optimizer.param_groups[0]["lr"] = 1.0
    other.model.weight.grad = torch.ones(1, 4)
    other.optimizer.step()
    assert host.model.weight[0].tolist() == [-1.0] * 4


def test_without_a_declaration_all_modules_optimisers_and_tensors_are_shared() -> None:
    host, other = UndeclaredAgent(), UndeclaredAgent()
    host.net.running_mean.fill_(7.0)  # type: ignore[union-attr]
    shared = share(host)
    assert set(shared) == {"net", "optimizer", "level"}
    adopt(other, shared)
    host.net.running_mean.fill_(8.0)  # type: ignore[union-attr]
    host.level.fill_(2.0)
    assert other.net.running_mean.tolist() == [8.0, 8.0]  # type: ignore[union-attr]
    assert other.level.tolist() == [2.0] * 3


def test_sync_parameters_is_called_on_agents_that_keep_a_copy() -> None:
    host, other = SyncingAgent(0), SyncingAgent(1)
    with torch.no_grad():
        host.model.weight.fill_(3.0)
    adopt(other, share(host))
    assert other.private.weight[0].tolist() == [3.0] * 4


def test_agents_that_do_not_fit_are_refused() -> None:
    host, other = CountingAgent(0), CountingAgent(1)
    other.model = torch.nn.Linear(5, 1, bias=False)
    with pytest.raises(ValueError, match="make_agent: model is not the same in every process"):
        adopt(other, share(host))
    other = CountingAgent(1)
    other.optimizer = torch.optim.SGD([*other.model.parameters(), *other.private.parameters()])
    with pytest.raises(ValueError, match="make_agent: optimizer is not the same"):
        adopt(other, share(host))
    with pytest.raises(TypeError, match="shared_attributes names 't', a int"):
        share(InvalidSharedAgent(0))
    assert share(TorchFreeAgent()) == {}


def test_only_shared_tensors_are_sent_by_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = CountingAgent(0)
    share(agent)
    rehearsal: Any = type(
        "Rehearsal", (), {"DupFd": int, "duplicate_for_child": lambda _, descriptor: descriptor}
    )()
    context.set_spawning_popen(rehearsal)
    try:
        packed = PickledValue(agent).__getstate__()
    finally:
        context.set_spawning_popen(None)
    assert b"rebuild_storage_fd" in packed
    assert b"_rebuild_parameter" in packed
    private = CountingAgent(0)
    context.set_spawning_popen(rehearsal)
    try:
        packed = PickledValue(private).__getstate__()
    finally:
        context.set_spawning_popen(None)
    assert b"rebuild_storage_fd" not in packed
    assert not private.model.weight.is_shared(), "packing moved nothing"
    copied = pickle.loads(packed)
    assert copied.optimizer.param_groups[0]["params"][0] is copied.model.weight


def test_an_unsent_parcel_returns_the_same_object() -> None:
    value = object()
    assert PickledValue(value).unpack() is value


def test_objects_that_cannot_be_pickled_are_refused_with_a_remedy() -> None:
    assert pickling_error({"a": 1}) is None
    with pytest.raises(
        TypeError, match=r"make_env cannot be sent to a new process .*start_method=\"fork\""
    ):
        check_picklable("make_env", lambda: None)


def test_a_process_takes_one_environment() -> None:
    assert _single_vector(ScriptedEnv(), 3).num_envs == 1
    with pytest.raises(ValueError, match="make_env: it made 2 environments"):
        _single_vector([ScriptedEnv(), ScriptedEnv()], None)
