"""Export formats and strategies beyond the acceptance rows."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.acceptance.estimator_kit import make_agent
from tests.acceptance.estimator_models import QUIET, CountingInputs, ScriptedEnv, regression
from workers.core.errors import PartNotFoundError
from workers.estimators.estimator import Estimator
from workers.estimators.export_strategies import make_export_strategy
from workers.estimators.model_owner import EstimatorNotTrainedError
from workers.estimators.run_config import RunConfig


def test_onnx_without_its_packages_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = Estimator(regression, tmp_path, RunConfig(**QUIET)).train(
        CountingInputs(), max_steps=1
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(PartNotFoundError, match="pip install onnx onnxscript"):
        estimator.export(tmp_path / "x", ["onnx"])


def test_nothing_is_exported_before_training(tmp_path: Path) -> None:
    estimator = Estimator(regression, tmp_path, RunConfig(**QUIET))
    with pytest.raises(EstimatorNotTrainedError, match=str(tmp_path)):
        estimator.export(tmp_path / "x", ["weights"])
    assert make_export_strategy().export(estimator, tmp_path / "export") is None


def test_an_exported_policy_is_greedy(tmp_path: Path) -> None:
    agent = make_agent(tmp_path).train(ScriptedEnv(), 4, 2, max_steps=3)
    path = agent.export(tmp_path / "policy", ["program"]) / "policy.pt2"
    program: Any = torch.export.load(path).module()
    states = torch.randn(5, 2)
    actions = program(states)
    assert actions.shape == (5,)
    assert all(torch.equal(program(states), actions) for _ in range(5)), (
        "half of the actions are random where it explores"
    )
