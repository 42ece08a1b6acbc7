"""Every schedule on a supervised definition."""

from pathlib import Path
from typing import Any

import pytest

from palestra.contract.states import Cause, Outcome
from tests.support.trainings import RUN, make_work_order
from tests.unit.workers.trainer_process.test_schedules import (
    answer_requests,
    execute,
    list_snapshot_ids,
    make_attempt,
    make_order_of_same_definition,
    read_records,
)
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.snapshot_requests import NoSnapshotReason


def make_spirals_definition(**sections: Any) -> dict[str, Any]:
    return {
        "kind": "supervised",
        "name": "spirals",
        "estimator": {"name": "classifier", "params": {"classes": 3, "hidden_sizes": [8]}},
        "train_input": {"name": "spirals", "params": {"batch_size": 20, "points": 100}},
        "evaluation_input": {"name": "spirals", "params": {"points": 20, "batch_size": 20}},
        "loop": {"updates": 40, "epoch_updates": 20},
        "evaluation": {"every_updates": 15},
        "snapshot": {"every_updates": 10, "keep_last": 3, "keep_best": False},
        **sections,
    }


@pytest.fixture(scope="module")
def trained_attempt(tmp_path_factory: pytest.TempPathFactory) -> AttemptDirectory:
    directory = make_attempt(
        tmp_path_factory.mktemp("trained"), make_work_order(make_spirals_definition())
    )
    assert execute(directory).outcome is Outcome.SUCCEEDED
    return directory


def list_exports(directory: AttemptDirectory) -> set[str]:
    return {path.name for path in (directory.exports / RUN).iterdir()}


def test_training_reports_its_updates(trained_attempt: AttemptDirectory) -> None:
    assert [one["update"] for one in read_records(trained_attempt, "evaluation")] == [15, 30, 40]
    written = [(one["update"], one["reason"]) for one in read_records(trained_attempt, "snapshot")]
    assert written == [
        (10, "periodic"),
        (20, "periodic"),
        (30, "periodic"),
        (40, "periodic"),
        (40, "finish"),
    ]


def test_a_finite_input_that_ends_is_a_success(tmp_path: Path) -> None:
    directory = make_attempt(
        tmp_path,
        make_work_order(
            make_spirals_definition(train_input={"name": "spirals", "params": {"epochs": 1}})
        ),
    )
    report = execute(directory)
    assert (report.outcome, report.cause, report.update) == (Outcome.SUCCEEDED, Cause.BUDGET, 10)


def test_a_test_makes_one_update_one_evaluation_and_one_export(tmp_path: Path) -> None:
    directory = make_attempt(tmp_path, make_work_order(make_spirals_definition(), schedule="test"))
    report = execute(directory)
    assert (report.outcome, report.update) == (Outcome.SUCCEEDED, 1)
    (made,) = read_records(directory)
    assert (made["type"], made["source"], made["length_mean"]) == ("evaluation", "test", 1.0)
    assert list_exports(directory) == {"weights.safetensors", "policy.json"}


def test_train_and_evaluate_exports(tmp_path: Path) -> None:
    directory = make_attempt(
        tmp_path, make_work_order(make_spirals_definition(), schedule="train_and_evaluate")
    )
    assert execute(directory).outcome is Outcome.SUCCEEDED
    assert list_exports(directory) == {"weights.safetensors", "policy.json"}


def test_rounds_end_with_an_evaluation_and_a_snapshot(tmp_path: Path) -> None:
    directory = make_attempt(
        tmp_path,
        make_work_order(make_spirals_definition(), schedule="continuous_train_and_evaluate"),
    )
    assert execute(directory).outcome is Outcome.SUCCEEDED
    assert [one["update"] for one in read_records(directory, "evaluation")] == [15, 30, 40]
    assert [one["update"] for one in read_records(directory, "snapshot")] == [15, 30, 40, 40]


@pytest.mark.parametrize(
    ("schedule", "source", "batches"),
    [("continuous_eval", "evaluation", 3), ("continuous_eval_on_train_data", "train_data", 20)],
)
def test_each_snapshot_is_evaluated(
    tmp_path: Path, trained_attempt: AttemptDirectory, schedule: str, source: str, batches: int
) -> None:
    directory = make_attempt(
        tmp_path,
        make_order_of_same_definition(
            trained_attempt, schedule, episodes=None, evaluation_seed=None
        ),
    )
    with answer_requests(
        directory,
        trained_attempt,
        [*reversed(list_snapshot_ids(trained_attempt)), NoSnapshotReason.OVER],
    ):
        assert execute(directory).outcome is Outcome.SUCCEEDED
    made = read_records(directory, "evaluation")
    assert [(one["update"], one["source"], one["length_mean"]) for one in made] == [
        (at, source, batches) for at in (40, 30, 20)
    ]
    assert set(made[0]["metrics"]) == {"accuracy", "loss"}
    if source == "evaluation":
        assert made[0]["metrics"] == read_records(trained_attempt, "evaluation")[-1]["metrics"], (
            "the same state gives the same numbers"
        )


def test_options_that_do_not_fit_the_model_fail_with_a_reason(tmp_path: Path) -> None:
    directory = make_attempt(
        tmp_path,
        make_work_order(make_spirals_definition(evaluation={"metric": "f1", "goal": "maximize"})),
    )
    report = execute(directory)
    assert (report.outcome, report.cause) == (Outcome.FAILED, Cause.USER_EXCEPTION)
    assert report.failure is not None
    assert (
        report.failure.message == "evaluation.metric: the model has no 'f1'; it has accuracy, loss"
    )
