"""Trainings in an environment whose episodes nothing limits: CliffWalking."""

from pathlib import Path
from typing import Any

import pytest

from palestra.contract.envs import DEFAULT_EPISODE_STEPS
from palestra.contract.states import Cause, Outcome
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.trainer_process.test_schedules import (
    answer_requests,
    execute,
    list_snapshot_ids,
    make_attempt,
    make_order_of_same_definition,
    read_records,
)
from workers.ipc.attempt_directory import AttemptDirectory, read_json
from workers.ipc.snapshot_requests import NoSnapshotReason

SUCCESS: dict[str, Any] = {"success_score": -1e9, "success_evaluations": 1}


def make_cliff_definition(**sections: Any) -> dict[str, Any]:
    return make_definition(
        env={"id": "CliffWalking-v1"},
        loop={"env_steps": 60},
        evaluation={"every_env_steps": 30, "episodes": 1},
        snapshot={"every_env_steps": 30},
        stop=SUCCESS,
        **sections,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> AttemptDirectory:
    directory = make_attempt(
        tmp_path_factory.mktemp("cliff"), make_work_order(make_cliff_definition())
    )
    report = execute(directory)
    assert (report.outcome, report.cause, report.env_step) == (Outcome.SUCCEEDED, Cause.BUDGET, 60)
    return directory


def test_evaluations_end_say_what_was_cut_and_are_no_success(trained: AttemptDirectory) -> None:
    evaluations = read_records(trained, "evaluation")
    assert [one["env_step"] for one in evaluations] == [30, 60]
    assert [one["cut_episodes"] for one in evaluations] == [1, 1]
    assert [one["length_max"] for one in evaluations] == [DEFAULT_EPISODE_STEPS] * 2
    assert read_json(trained.progress)["evaluation"] == 2 * DEFAULT_EPISODE_STEPS


@pytest.mark.parametrize("schedule", ["continuous_eval", "continuous_eval_on_train_data"])
def test_continuous_evaluations_end_and_are_no_success(
    tmp_path: Path, trained: AttemptDirectory, schedule: str
) -> None:
    order = make_order_of_same_definition(trained, schedule, episodes=1)
    directory = make_attempt(tmp_path, order)
    newest = list_snapshot_ids(trained)[-1]
    with answer_requests(directory, trained, [newest, NoSnapshotReason.OVER]):
        report = execute(directory)
    assert (report.outcome, report.cause) == (Outcome.SUCCEEDED, Cause.BUDGET)
    (evaluation,) = read_records(directory, "evaluation")
    assert evaluation["cut_episodes"] == 1


def test_an_evaluation_in_its_own_process_counts_its_steps(tmp_path: Path) -> None:
    order = make_work_order(make_cliff_definition())
    resources = order.resources.model_copy(update={"evaluation": "process"})
    directory = make_attempt(tmp_path, order.model_copy(update={"resources": resources}))
    assert execute(directory).cause is Cause.BUDGET
    cut = [one["cut_episodes"] for one in read_records(directory, "evaluation")]
    assert set(cut) == {1}
    assert read_json(directory.progress)["evaluation"] == len(cut) * DEFAULT_EPISODE_STEPS


def test_with_a_limit_nothing_is_cut_and_a_score_is_a_success(tmp_path: Path) -> None:
    document = make_cliff_definition()
    document["evaluation"]["max_episode_steps"] = 20
    directory = make_attempt(tmp_path, make_work_order(document))
    assert execute(directory).cause is Cause.SUCCESS_SCORE
    (evaluation,) = read_records(directory, "evaluation")
    assert "cut_episodes" not in evaluation, "earlier servers do not know it"
