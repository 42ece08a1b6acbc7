"""Supervised definitions through the assembled parts: training, exact resume,
evaluation, export.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from palestra.contract.names import Schedule
from palestra.contract.work_order import WorkOrder
from tests.support.trainings import TrainingAttempt, load_order_snapshot, make_work_order
from workers.assembly.training import build_evaluator, build_train_data_evaluator, fresh_agent
from workers.core.errors import DefinitionError, PartNotFoundError
from workers.core.types import StopReason
from workers.engine.clock import StillClock
from workers.rl.evaluate.vector_evaluator import fixed_seed_rule
from workers.trainer_process.schedules import native

EXAMPLE = Path(__file__).parents[4] / "examples" / "digits-classifier.yaml"


def make_spirals_definition(**sections: Any) -> dict[str, Any]:
    """Returns a definition of a classifier of points on spirals, which trains in a second."""
    return {
        "kind": "supervised",
        "name": "spirals",
        "estimator": {
            "name": "classifier",
            "params": {"classes": 3, "hidden_sizes": [24], "learning_rate": 0.01},
        },
        "train_input": {"name": "spirals", "params": {"batch_size": 32}},
        "evaluation_input": {"name": "spirals", "params": {"points": 50}},
        "loop": {"updates": 200, "epoch_updates": 50},
        "evaluation": {"every_updates": 60, "metric": "accuracy", "goal": "maximize"},
        "snapshot": {"every_updates": 35},
        **sections,
    }


def list_evaluations(trained: TrainingAttempt) -> list[dict[str, Any]]:
    return [record for record in trained.dump_records() if record["type"] == "evaluation"]


def list_snapshots(trained: TrainingAttempt) -> list[dict[str, Any]]:
    return [record for record in trained.dump_records() if record["type"] == "snapshot"]


@pytest.fixture(scope="module")
def uninterrupted_training(tmp_path_factory: pytest.TempPathFactory) -> TrainingAttempt:
    return TrainingAttempt(
        make_work_order(make_spirals_definition()), tmp_path_factory.mktemp("straight")
    ).run()


def test_a_supervised_training_reduces_its_loss(uninterrupted_training: TrainingAttempt) -> None:
    rows = list_evaluations(uninterrupted_training)
    assert [(row["env_step"], row["update"], row["final"]) for row in rows] == [
        (60, 60, False),
        (120, 120, False),
        (180, 180, False),
        (200, 200, True),
    ]
    assert rows[-1]["metrics"]["accuracy"] > 0.8 > rows[0]["metrics"]["accuracy"] > 1 / 3
    assert rows[-1]["metrics"]["loss"] < rows[0]["metrics"]["loss"]
    assert all(
        row["mean"] == row["metrics"]["accuracy"] and row["returns"] == [row["mean"]]
        for row in rows
    )
    assert {row["length_mean"] for row in rows} == {3}, "150 points in batches of 64"


def test_the_example_classifies_unseen_digits(tmp_path: Path) -> None:
    document = yaml.safe_load(EXAMPLE.read_text())["definition"]
    short = {
        **document,
        "loop": {"updates": 400},
        "train_input": {"name": "digits", "params": {"images": 2_000}},
    }
    rows = list_evaluations(TrainingAttempt(make_work_order(short), tmp_path).run())
    assert rows[-1]["metrics"]["accuracy"] > 0.95


@pytest.mark.parametrize("pause_at", [1, 90, 119, 198])
def test_a_resume_is_bit_exact(
    uninterrupted_training: TrainingAttempt, tmp_path: Path, pause_at: int
) -> None:
    order = make_work_order(make_spirals_definition())
    first = TrainingAttempt(order, tmp_path / "first").run(pause_at=pause_at)
    newest = list_snapshots(first)[-1]
    snapshot, at = tmp_path / "first" / newest["snapshot_id"], newest["update"]
    loaded = load_order_snapshot(order, snapshot)
    assert loaded.manifest.resume_exact
    assert at == pause_at + 1, "the order is seen at the next boundary"
    second = TrainingAttempt(order, tmp_path / "second", snapshot).run()
    assert second.exact
    assert second.hash_weights() == uninterrupted_training.hash_weights()
    assert (
        first.list_points(until=at) + second.list_points()
        == sorted(uninterrupted_training.list_points(), key=repr)
        or sorted(first.list_points(until=at) + second.list_points(), key=repr)
        == uninterrupted_training.list_points()
    )


def test_series_epochs_snapshots_and_the_best_follow_the_updates(
    uninterrupted_training: TrainingAttempt,
) -> None:
    assert {
        record["series"]
        for record in uninterrupted_training.dump_records()
        if record["type"] == "points"
    } == {
        "loss/train",
        "learning_rate",
    }
    stats = [
        record
        for record in uninterrupted_training.dump_records()
        if record["type"] == "experiment_stats"
    ]
    assert [(record["total_epoch"], record["update"]) for record in stats] == [
        (0, 50),
        (1, 100),
        (2, 150),
        (3, 200),
    ]
    written = [
        (record["reason"], record["update"]) for record in list_snapshots(uninterrupted_training)
    ]
    periodic = [update for reason, update in written if reason == "periodic"]
    assert periodic == [35, 70, 105, 140, 175, 200], "the last one is before the final evaluation"
    best = [
        record for record in list_snapshots(uninterrupted_training) if record["score"] is not None
    ]
    assert best[-1]["score"] == max(row["mean"] for row in list_evaluations(uninterrupted_training))
    assert written[-1] == ("finish", 200)


def test_the_default_score_is_the_negative_loss(tmp_path: Path) -> None:
    rows = list_evaluations(
        TrainingAttempt(
            make_work_order(
                make_spirals_definition(evaluation={"every_updates": None}, loop={"updates": 20})
            ),
            tmp_path,
        ).run()
    )
    assert [row["mean"] for row in rows] == [-rows[0]["metrics"]["loss"]]


def test_a_score_that_is_reached_ends_the_run(tmp_path: Path) -> None:
    trained = TrainingAttempt(
        make_work_order(make_spirals_definition(stop={"success_score": 0.6})), tmp_path
    ).run()
    assert len(list_evaluations(trained)) < 4
    assert list_evaluations(trained)[-1]["mean"] >= 0.6


def test_the_end_of_a_finite_input_ends_the_run(tmp_path: Path) -> None:
    document = make_spirals_definition(
        train_input={"name": "spirals", "params": {"batch_size": 100, "epochs": 2}}
    )
    trained = TrainingAttempt(make_work_order(document), tmp_path).run()
    assert list_snapshots(trained)[-1]["update"] == 12
    assert (
        load_order_snapshot(trained.order, trained.get_snapshot("finish")[0]).manifest.stop
        == StopReason.INPUT_EXHAUSTED
    )
    assert list_evaluations(trained)[-1]["update"] == 12


def test_a_loss_that_is_not_finite_ends_the_run_as_diverged(tmp_path: Path) -> None:
    estimator = {
        "name": "classifier",
        "params": {"classes": 3, "learning_rate": 1.0, "hidden_sizes": [4]},
    }
    poisoned = make_work_order(
        make_spirals_definition(estimator=estimator, hooks=[{"name": "nan_guard", "updates": 3}])
    )
    trained = TrainingAttempt(poisoned, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "workers.supervised.models.cross_entropy",
            lambda logits, labels: logits.sum() * float("nan"),
        )
        trained.run()
    assert list_snapshots(trained)[-1]["reason"] == "exception"
    assert list_snapshots(trained)[-1]["update"] < 60


@pytest.mark.parametrize(
    ("sections", "error", "told"),
    [
        (
            {"evaluation": {"metric": "f1", "goal": "maximize"}},
            DefinitionError,
            "evaluation.metric: the model has no 'f1'; it has accuracy, loss",
        ),
        (
            {"estimator": {"name": "perceptron"}},
            PartNotFoundError,
            "no installed distribution registers 'perceptron'",
        ),
        (
            {"train_input": {"name": "imagenet"}},
            PartNotFoundError,
            "no installed distribution registers 'imagenet'",
        ),
    ],
)
def test_missing_functions_and_metrics_are_named(
    tmp_path: Path, sections: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        TrainingAttempt(make_work_order(make_spirals_definition(**sections)), tmp_path).run()


def make_snapshot_order(straight: TrainingAttempt, schedule: Schedule, **run: Any) -> WorkOrder:
    return make_work_order(
        json.loads(straight.order.definition.model_dump_json()), schedule=schedule.value, **run
    )


def test_a_snapshot_is_evaluated_as_it_was_in_training(
    uninterrupted_training: TrainingAttempt,
) -> None:
    loaded = load_order_snapshot(
        uninterrupted_training.order, uninterrupted_training.get_snapshot("finish")[0]
    )
    order = make_snapshot_order(uninterrupted_training, Schedule.EVALUATE, evaluation_seed=3)
    (record,) = native.evaluate(order.definition, order.runs[0], loaded, 0.0, "cpu")
    assert record.metrics == list_evaluations(uninterrupted_training)[-1]["metrics"]
    assert (record.update, record.seed, record.snapshot_id) == (200, 3, loaded.manifest.snapshot_id)
    (few,) = native.evaluate(
        order.definition, order.runs[0].model_copy(update={"episodes": 1}), loaded, 0.0, "cpu"
    )
    assert few.length_mean == 1


def test_an_evaluation_changes_nothing_and_can_be_on_training_data(
    uninterrupted_training: TrainingAttempt,
) -> None:
    loaded = load_order_snapshot(
        uninterrupted_training.order, uninterrupted_training.get_snapshot("finish")[0]
    )
    model = fresh_agent(uninterrupted_training.order.definition, 7, "cpu")
    model.load_state_dict(loaded.state["agent"])
    before, clock = torch.random.get_rng_state(), StillClock.from_state(loaded.state)
    first = build_evaluator(
        uninterrupted_training.order.definition, model, fixed_seed_rule(1)
    ).evaluate(clock)
    assert first == build_evaluator(
        uninterrupted_training.order.definition, model, fixed_seed_rule(1)
    ).evaluate(clock)
    on_train = build_train_data_evaluator(
        uninterrupted_training.order.definition, model, 7
    ).evaluate(clock)
    assert on_train.lengths == (50,), "as many batches as an epoch has"
    assert on_train.metrics["accuracy"] > 0.8
    assert torch.equal(before, torch.random.get_rng_state())


def test_an_export_predicts_without_the_model_function(
    uninterrupted_training: TrainingAttempt, tmp_path: Path
) -> None:
    order = uninterrupted_training.order
    loaded = load_order_snapshot(order, uninterrupted_training.get_snapshot("finish")[0])
    model = native.load_agent(order.definition, 7, loaded, "cpu")
    files = native.export(
        order.definition,
        order.runs[0],
        model,
        StillClock.from_state(loaded.state),
        tmp_path,
        ("weights", "program"),
    )
    assert {file.name for file in files} == {"weights.safetensors", "policy.json", "policy.pt2"}
    described = json.loads((tmp_path / "policy.json").read_text())
    assert described["estimator"]["name"] == "classifier"
    assert described["features"] == {"x": {"shape": [2], "dtype": "float32"}}
    program = torch.export.load(tmp_path / "policy.pt2").module()
    points = torch.tensor([[0.1, 0.2], [-0.5, 0.3], [0.9, 0.0]])
    assert torch.equal(program(points), model.acting_module()(points))
