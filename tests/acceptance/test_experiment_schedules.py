"""Experiment: its schedules, and how it is made from documents (rows E9 to E15)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
import torch

from tests.acceptance.estimator_kit import (
    CLUSTER,
    CallLog,
    FakeServer,
    KillHook,
    SimulatedKill,
    TracingHook,
    are_equal,
    make_experiment,
    read_state,
    set_fake_clock,
)
from tests.acceptance.estimator_models import CountingInputs
from workers.core.errors import PartNotFoundError
from workers.entrypoints.experiment_parts.documents import ExperimentConfig, create_experiment
from workers.entrypoints.experiment_parts.run_experiment import default_schedule, run_experiment
from workers.entrypoints.experiment_parts.supervised_experiment import Experiment
from workers.estimators.evaluation_results import read_results
from workers.estimators.export_strategies import ExportStrategy, make_export_strategy
from workers.estimators.run_config import RunConfig
from workers.supervised.inputs import bound_input
from workers.supervised.modes import Modes


def test_E9_continuous_eval(tmp_path: Path) -> None:
    make_experiment(tmp_path).estimator.train(CountingInputs(), steps=3)
    recorded = CallLog()
    given: list[Any] = []

    def predicate(result: Any) -> bool:
        given.append(result)
        return len(given) < 300

    assert (
        make_experiment(tmp_path, recorded, train_steps=10).continuous_eval(
            continuous_eval_predicate_fn=predicate
        )
        is None
    )
    assert len(given) == 300
    assert len(recorded.get_calls("evaluate")) == 1
    assert given[0] is None
    assert given[1]["global_step"] == 3
    assert given[2:] == [{}] * 298
    make_experiment(tmp_path).estimator.train(CountingInputs(), max_steps=10)
    recorded = CallLog()
    make_experiment(tmp_path, recorded, train_steps=10).continuous_eval(
        delay_secs=5, throttle_delay_secs=7
    )
    assert (len(recorded.calls), recorded.times) == (1, [5]), "train_steps is reached"
    recorded = CallLog()
    looks = iter([True] * 4 + [False])
    made = make_experiment(tmp_path, recorded, train_steps=99)
    made.continuous_eval(0, 7, False, lambda _: next(looks))
    assert recorded.times == [0], "the training ended, and its last state was evaluated"
    with pytest.raises(ValueError, match="continuous_eval_predicate_fn"):
        made.continuous_eval(continuous_eval_predicate_fn="x")  # type: ignore[arg-type]
    assert {row["global_step"] for row in read_results(tmp_path, "continuous")} == {3, 10}


def test_E10_continuous_eval_on_train_data(tmp_path: Path) -> None:
    train, evaluate = CountingInputs(), CountingInputs(20)
    made = make_experiment(
        tmp_path, train_input_fn=train, eval_input_fn=evaluate, train_steps=3, eval_steps=6
    )
    made.train()
    train.drawn = 0
    made.continuous_eval_on_train_data()
    assert (train.calls, train.drawn, evaluate.calls) == (2, 6, 0)
    assert len(read_results(tmp_path, "continuous_on_train_data")) == 1
    assert read_results(tmp_path, "continuous") == []


def test_E11_train_and_evaluate(tmp_path: Path) -> None:
    recorded = CallLog()
    strategies = [
        ExportStrategy(
            name, lambda model, path, checkpoint, result: (path.name, result["global_step"])
        )
        for name in ("a", "b")
    ]
    made = make_experiment(tmp_path, recorded, train_steps=7, export_strategies=strategies)
    result, exports = made.train_and_evaluate()
    assert len(recorded.get_calls("train")) == 1
    assert [call["name"] for call in recorded.get_calls("evaluate")] == [None]
    assert exports == [("a", 7), ("b", 7)]
    assert result is not None
    assert result["global_step"] == 7
    failing = make_experiment(tmp_path, train_steps=9, train_hooks=[KillHook(8)])
    with pytest.raises(SimulatedKill):
        failing.train_and_evaluate()
    with pytest.raises(SimulatedKill):
        failing.train_and_evaluate()
    assert len(failing._train_hooks) == 1, "the hooks are as they were, also after an error"


def test_E11_evaluation_during_training_changes_nothing(tmp_path: Path) -> None:
    config = {"save_checkpoints_steps": 2}
    make_experiment(tmp_path / "with", config=config, train_steps=12).train_and_evaluate()
    plain = make_experiment(tmp_path / "without", config=config, train_steps=12)
    plain.train()
    assert are_equal(
        read_state(plain.estimator), read_state(make_experiment(tmp_path / "with").estimator)
    )
    assert len(read_results(tmp_path / "with", None)) == 6


def test_E12_continuous_train_and_evaluate(tmp_path: Path) -> None:
    recorded = CallLog()
    made = make_experiment(tmp_path, recorded, train_steps=250, train_steps_per_iteration=100)
    result, exports = made.continuous_train_and_evaluate(lambda result: result is None)
    assert [name for name, _ in recorded.calls] == ["train", "evaluate"]
    assert (
        recorded.get_calls("train")[0]["steps"],
        recorded.get_calls("train")[0]["max_steps"],
    ) == (100, None)
    assert result is not None
    assert (result["global_step"], exports) == (100, [])
    recorded = CallLog()
    make_experiment(
        tmp_path, recorded, train_steps=250, train_steps_per_iteration=100
    ).continuous_train_and_eval()
    assert [call["steps"] for call in recorded.get_calls("train")] == [100, 50]
    finite = make_experiment(
        tmp_path / "finite",
        CallLog(),
        train_input_fn=CountingInputs(30),
        train_steps=250,
        train_steps_per_iteration=20,
    )
    finished, _ = finite.continuous_train_and_evaluate()
    assert finished is not None
    assert finished["global_step"] == 30, "an input that ends is no endless loop"


def test_E13_run_std_server(tmp_path: Path) -> None:
    trace: list[str] = []
    made = make_experiment(tmp_path, config={**CLUSTER, "task_id": 1})
    set_fake_clock(made, CallLog(), make_server=lambda _: FakeServer(trace)).run_std_server()
    assert trace == ["start", "join"]
    for missing in ("cluster", "master", "task_type"):
        config = {**CLUSTER, "task_id": 1}
        del config[missing]
        with pytest.raises(ValueError, match=missing):
            make_experiment(tmp_path, config=config).run_std_server()
    with pytest.raises(ValueError, match="task 7"):
        make_experiment(tmp_path, config={**CLUSTER, "task_id": 7}).run_std_server()


def test_E14_test(tmp_path: Path) -> None:
    exported: list[str] = []
    strategy = ExportStrategy(
        "one", lambda model, path, checkpoint, result: exported.append(checkpoint.name)
    )
    recorded, hook, train_hook = CallLog(), TracingHook(), TracingHook()
    options = {
        "train_steps": 50,
        "export_strategies": strategy,
        "eval_hooks": [hook],
        "train_hooks": [train_hook],
    }
    result = make_experiment(tmp_path, recorded, **options).test()
    assert [(name, arguments["steps"]) for name, arguments in recorded.calls] == [
        ("train", 1),
        ("evaluate", 1),
    ]
    assert exported == ["ckpt-1"]
    assert result["global_step"] == 1
    assert (hook.events, train_hook.events) == ([], [])
    assert list(tmp_path.iterdir()) == [], "the directory of the model is left alone"


CONFIG: dict[str, Any] = {
    "model": {
        "name": "classifier",
        "params": {"classes": 3, "hidden_sizes": [16], "learning_rate": 0.01},
    },
    "train_input": {"name": "spirals", "params": {"points": 60, "batch_size": 30}},
    "eval_input": {"name": "spirals", "params": {"points": 20, "batch_size": 30}},
    "run": {"seed": 3, "save_checkpoints_steps": 100, "save_summary_steps": 0},
    "train_steps": 30,
    "eval_steps": None,
    "train_hooks": [{"name": "StopAtStepHook", "params": {"last_step": 25}}],
    "eval_hooks": [{"name": "StopAfterNEvalsHook", "params": {"num_evals": 1}}],
    "eval_delay_secs": 0.5,
    "continuous_eval_throttle_secs": 1.5,
    "eval_every_n_steps": 20,
    "delay_workers_by_global_step": True,
    "export_strategies": [{"name": "policy", "formats": ["weights"]}],
    "train_steps_per_iteration": 10,
}


def test_E15_create_experiment(tmp_path: Path) -> None:
    document = {**CONFIG, "model_dir": str(tmp_path)}
    config = ExperimentConfig.model_validate_json(json.dumps(document))
    for form in (document, json.dumps(document), config, config.model_dump_json()):
        made = create_experiment(experiment_config=form)
        options = made.options
        same_names = (
            "train_steps",
            "eval_steps",
            "eval_delay_secs",
            "continuous_eval_throttle_secs",
            "eval_every_n_steps",
        )
        assert {name: getattr(options, name) for name in same_names} == {
            name: CONFIG[name] for name in same_names
        }
        assert (options.delay_workers_by_global_step, options.train_steps_per_iteration) == (
            True,
            10,
        )
        assert [type(hook).__name__ for hook in (*options.train_hooks, *options.eval_hooks)] == [
            "StopAtStepHook",
            "StopAfterNEvalsHook",
        ]
        assert [strategy.name for strategy in made.export_strategies] == ["policy"]
        assert made.estimator.params == CONFIG["model"]["params"]
        assert (made.estimator.config.seed, made.estimator.model_dir) == (3, str(tmp_path))
    set_fake_clock(made, CallLog())
    result = made.train().evaluate(bound_input("spirals", Modes.EVAL, {}))
    assert result["global_step"] == 25, "the hook of the document stops it"
    assert made.evaluate()["accuracy"] >= 0
    wrong: dict[str, Any] = {
        "oracle": {"model": {"name": "oracle"}},
        "moon": {"train_input": {"name": "moon"}},
        "sun": {"eval_input": {"name": "sun"}},
        "NoHook": {"eval_hooks": [{"name": "NoHook"}]},
    }
    for name, change in wrong.items():
        with pytest.raises(PartNotFoundError, match=name):
            create_experiment({**document, **change})
    for place, change in {
        "train_steps": {"train_steps": "3"},
        "run.seeed": {"run": {"seeed": 1}},
    }.items():
        with pytest.raises(ValueError, match=place):
            create_experiment({**document, **change})


@pytest.mark.slow
def test_E15_a_supervised_model_learns_and_is_exported(tmp_path: Path) -> None:
    document = CONFIG | {
        "model": {
            "name": "classifier",
            "params": {
                "classes": 10,
                "learning_rate": 0.005,
                "decay": {"decay_steps": 400, "end": 0.0},
            },
        },
        "model_dir": str(tmp_path),
        "train_input": {"name": "digits"},
        "eval_input": {"name": "digits", "params": {"images": 500}},
        "train_steps": 400,
        "train_hooks": [],
        "eval_hooks": [],
        "eval_delay_secs": 0,
        "eval_every_n_steps": 0,
        "delay_workers_by_global_step": False,
        "export_strategies": [{"name": "policy", "formats": ["weights", "program", "onnx"]}],
    }
    result, (exported,) = create_experiment(document).train_and_evaluate()
    assert result is not None
    assert result["accuracy"] > 0.9
    features, labels = next(iter(bound_input("digits", Modes.EVAL, {"images": 40})()))  # type: ignore[arg-type]
    program = torch.export.load(exported / "policy.pt2").module()
    predicted = program(torch.from_numpy(features["x"])).numpy()
    assert (predicted == labels).mean() > 0.8
    session = onnx.reference.ReferenceEvaluator(onnx.load(exported / "policy.onnx"))
    (from_onnx,) = session.run(None, {"input_0": features["x"]})
    assert np.array_equal(from_onnx, predicted)


def test_E15_run_experiment(tmp_path: Path) -> None:
    made: list[str] = []

    def make(output_dir: str) -> Experiment:
        made.append(output_dir)
        return make_experiment(Path(output_dir), train_steps=3)

    result, _ = run_experiment(make, tmp_path)
    assert (made, result["global_step"]) == ([str(tmp_path)], 3)
    assert run_experiment(make, tmp_path, "evaluate")["global_step"] == 3
    with pytest.raises(ValueError, match="continuous_eval"):
        run_experiment(make, tmp_path, "trane")
    with pytest.raises(ValueError, match="output_dir"):
        run_experiment(make, "")
    with pytest.raises(TypeError, match="callable"):
        run_experiment(3, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Experiment"):
        run_experiment(lambda _: 3, tmp_path)  # type: ignore[arg-type,return-value]
    for task, schedule in {
        "master": "train_and_evaluate",
        "worker": "train",
        "ps": "run_std_server",
    }.items():
        assert (
            default_schedule(
                RunConfig(cluster={task: ["a:1"]}, master="a:1", task_type=task, task_id=0)
            )
            == schedule
        )
    with pytest.raises(ValueError, match="cook"):
        default_schedule(
            RunConfig(cluster={"cook": ["a:1"]}, master="a:1", task_type="cook", task_id=0)
        )


def test_E15_export_strategies_have_names() -> None:
    with pytest.raises(ValueError, match="exports_to_keep"):
        make_export_strategy(exports_to_keep=0)
