"""Jobs that evaluate greedy actions, actions drawn from the policy, or both."""

from pathlib import Path
from typing import Any

import pytest

from palestra.contract.states import Cause, Outcome
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.trainer_process.test_attempt import (
    add_newest_snapshot,
    execute,
    execute_with_input,
    read_records,
)
from tests.unit.workers.trainer_process.test_schedules import (
    answer_requests,
    list_snapshot_ids,
    make_attempt,
    make_order_of_same_definition,
)
from tests.unit.workers.trainer_process.test_schedules import execute as execute_attempt
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.snapshot_requests import NoSnapshotReason

SMALL: dict[str, Any] = {
    "loop": {"env_steps": 128},
    "evaluation": {"every_env_steps": None, "episodes": 1},
    "snapshot": {"every_env_steps": 64},
}
DEFINITION = make_definition("ppo", **SMALL)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> AttemptDirectory:
    return execute(tmp_path_factory.mktemp("ppo"), make_work_order(DEFINITION))[0]


def evaluate(
    root: Path, trained: AttemptDirectory, definition: dict[str, Any] = DEFINITION, **run: Any
) -> tuple[list[dict[str, Any]], Any]:
    order = make_work_order(
        definition,
        schedule="evaluate",
        **add_newest_snapshot(trained, {"episodes": 6, "evaluation_seed": 5, **run}),
    )
    directory, report = execute_with_input(root, trained, order)
    return read_records(directory, "evaluation"), report


def test_both_policies_are_evaluated_on_the_same_seeds(
    tmp_path: Path, trained: AttemptDirectory
) -> None:
    greedy, stochastic = evaluate(tmp_path / "both", trained, policy="both")[0]
    assert (greedy["source"], stochastic["source"]) == ("evaluation", "stochastic")
    assert greedy["snapshot_id"] == stochastic["snapshot_id"]
    assert (greedy["seed"], greedy["episodes"]) == (stochastic["seed"], stochastic["episodes"])
    assert greedy["returns"] != stochastic["returns"]
    (again,) = evaluate(tmp_path / "again", trained, policy="stochastic")[0]
    assert again["returns"] == stochastic["returns"], "the seed determines the actions, too"
    (plain,) = evaluate(tmp_path / "greedy", trained)[0]
    assert plain["returns"] == greedy["returns"]


def test_a_continuous_evaluation_draws_actions_and_ends_by_greedy_ones_alone(
    tmp_path: Path, trained: AttemptDirectory
) -> None:
    order = make_order_of_same_definition(trained, "continuous_eval", policy="both", episodes=2)
    directory = make_attempt(tmp_path, order)
    newest = list_snapshot_ids(trained)[-1]
    with answer_requests(directory, trained, [newest, NoSnapshotReason.OVER]):
        report = execute_attempt(directory)
    assert (report.outcome, report.cause) == (Outcome.SUCCEEDED, Cause.BUDGET)
    made = read_records(directory, "evaluation")
    assert [one["source"] for one in made] == ["evaluation", "stochastic"]


@pytest.mark.parametrize(
    ("policy", "cause"), [("stochastic", Cause.BUDGET), ("both", Cause.SUCCESS_SCORE)]
)
def test_a_drawn_evaluation_is_no_success(tmp_path: Path, policy: str, cause: Cause) -> None:
    definition = make_definition("ppo", **SMALL, stop={"success_score": 0.0})
    directory, _ = execute(tmp_path / "trained", make_work_order(definition))
    order = make_order_of_same_definition(directory, "continuous_eval", policy=policy, episodes=1)
    following = make_attempt(tmp_path, order)
    newest = list_snapshot_ids(directory)[-1]
    with answer_requests(following, directory, [newest, NoSnapshotReason.OVER]):
        assert execute_attempt(following).cause is cause


def test_a_deterministic_policy_is_refused_by_name(tmp_path: Path) -> None:
    definition = make_definition(**SMALL)
    directory, _ = execute(tmp_path / "trained", make_work_order(definition))
    made, report = evaluate(tmp_path / "evaluated", directory, definition, policy="stochastic")
    assert (made, report.outcome) == ([], Outcome.FAILED)
    assert "the policy of dqn is deterministic" in report.failure.message
