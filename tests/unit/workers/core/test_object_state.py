"""How the state of a user's object is found, saved and restored."""

import logging
import random
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from workers.core.object_state import StateMismatchError, load_state, pack, state_of, unpack
from workers.snapshot.state_files import read_tree, write_tree


class Part:
    def __init__(self, value: float) -> None:
        self.value = value


class Algorithm:
    """An object with one attribute of every kind."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = nn.Linear(2, 3)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1 * seed)
        self.networks = [nn.Linear(1, 1), nn.Linear(1, 2)]
        self.by_name = {"a": nn.Linear(1, 1), "b": 3}
        self.weights = np.full(3, float(seed))
        self.view = self.weights[:2]
        self.theta = torch.full((2,), float(seed), requires_grad=True)
        self.recent: deque[float] = deque([float(seed)], maxlen=4)
        self.pair = (seed, "x", None)
        self.counts = {1: seed, (0, 1): 2 * seed}
        self.part = Part(seed)
        self.same_part = self.part
        self.generators = [
            np.random.default_rng(seed),
            random.Random(seed),
            torch.Generator().manual_seed(seed),
        ]
        self.log = logging.getLogger("x")
        self.rule = lambda value: value + seed

    def train_once(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()
        self.weights += 1
        self.recent.append(1.5)
        self.part.value += 1
        self.best_part = self.part
        self.last_loss = float("nan")
        for one in self.generators:
            torch.rand(3, generator=one) if isinstance(one, torch.Generator) else one.random()


def test_every_kind_of_attribute_is_restored_from_disk(tmp_path: Path) -> None:
    first, second = Algorithm(1), Algorithm(2)
    first.train_once()
    write_tree(tmp_path, {"agent": {"algorithm": state_of(first, "algo")}})
    theta, weights = second.theta, second.weights
    load_state(second, read_tree(tmp_path)["agent"]["algorithm"], "algo")
    for one, two in zip(
        (first.model, *first.networks), (second.model, *second.networks), strict=True
    ):
        assert all(
            torch.equal(a, b)
            for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
        )
    assert second.optimizer.param_groups[0]["lr"] == 0.1
    first.train_once()
    second.train_once()
    assert torch.equal(first.model.weight, second.model.weight)
    assert second.weights is weights
    assert second.view.tolist() == [3.0, 3.0]
    assert second.theta is theta
    assert theta.tolist() == [1.0, 1.0]
    assert theta.requires_grad
    assert second.recent == first.recent
    assert second.recent.maxlen == 4
    assert (second.pair, second.counts, second.by_name["b"]) == (first.pair, first.counts, 3)
    assert second.part is second.same_part is second.best_part
    assert second.part.value == 3
    assert [str(one.random()) for one in second.generators[:2]] == [
        str(one.random()) for one in first.generators[:2]
    ]
    assert torch.equal(*(torch.rand(3, generator=one.generators[2]) for one in (first, second)))


def test_loggers_functions_and_given_parts_are_not_saved() -> None:
    state = state_of(Algorithm(1), "algo")
    assert state is not None
    assert not {"log", "rule"} & set(state["$attributes"])
    skipped = Algorithm(1)
    assert "part" not in (state_of(skipped, "algo", [skipped.part]) or {})["$attributes"]


def test_a_state_that_does_not_fit_is_refused() -> None:
    state = state_of(Algorithm(1), "algo")
    for name, value, message in (
        ("model", None, r"algo\.model: .*here is nothing; set the algorithm up"),
        ("networks", [nn.Linear(1, 1)], r"algo\.networks: .*holds 1"),
        ("by_name", {"b": 1}, r"algo\.by_name: .*holds a"),
        ("theta", torch.zeros(5, requires_grad=True), r"algo\.theta: .*tensor"),
        ("generators", [1, 2, 3], r"algo\.generators\.0: .*generator"),
        ("part", None, r"algo\.part: .*attributes"),
    ):
        other = Algorithm(1)
        setattr(other, name, value)
        with pytest.raises(StateMismatchError, match=message):
            load_state(other, state, "algo")


def test_cycles_end() -> None:
    one, two = Part(1), Part(2)
    one.other, two.other = two, one  # type: ignore[attr-defined]
    state = state_of(one, "algo")
    load_state(one, state, "algo")
    assert two.other is one  # type: ignore[attr-defined]


def test_values_that_a_state_dict_may_not_hold_are_named() -> None:
    holder = SimpleNamespace(
        state_dict=lambda: {"inner": [1, object()]}, load_state_dict=lambda _: None
    )
    with pytest.raises(
        TypeError, match=r"algo\.state_dict\(\)\.inner\[1\]: a object cannot be saved"
    ):
        state_of(holder, "algo")


@pytest.mark.parametrize(
    "value",
    [
        {1: "x"},
        (1, (2, [3])),
        deque([1], 2),
        {"a": {"$b": 1}},
        [None, True, 1.5],
        float("inf"),
        {(1, 2): 3},
    ],
)
def test_plain_data_is_restored(value: Any) -> None:
    assert unpack(pack(value, "x")) == value
    objects = np.array([None, "x", np.zeros(2)], object)
    assert [str(one) for one in unpack(pack(objects, "x"))] == [str(one) for one in objects]
