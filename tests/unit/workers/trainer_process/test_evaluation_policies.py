"""Jobs that evaluate greedy actions, actions drawn from the policy, or both."""

import json
from pathlib import Path
from typing import Any

import pytest

from palestra.contract.definition import RlDefinition
from palestra.contract.identity import hash_definition
from palestra.contract.job_options import Resources
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
from workers.assembly.training import load_agent
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.snapshot_requests import NoSnapshotReason
from workers.rl.envs.factory import make_rendered
from workers.rl.evaluate.episode_film import Film
from workers.rl.evaluate.vector_evaluator import episode_seed
from workers.snapshot.attempt_store import load_snapshot

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


def read_sources(directory: AttemptDirectory) -> list[tuple[int, str, bool]]:
    made = read_records(directory, "evaluation")
    return [(one["env_step"], one["source"], one["final"]) for one in made]


def test_a_training_evaluates_both_policies_and_scores_follow_greedy_ones(tmp_path: Path) -> None:
    evaluation = {"every_env_steps": 64, "episodes": 4, "policy": "both"}
    definition = make_definition("ppo", **{**SMALL, "evaluation": evaluation})
    directory, report = execute(tmp_path / "both", make_work_order(definition))
    assert report.outcome is Outcome.SUCCEEDED
    assert read_sources(directory) == [
        (64, "evaluation", False),
        (64, "stochastic", False),
        (128, "evaluation", True),
        (128, "stochastic", True),
    ]
    made = read_records(directory, "evaluation")
    alone = make_definition("ppo", **{**SMALL, "evaluation": {**evaluation, "policy": "greedy"}})
    greedy = read_records(execute(tmp_path / "greedy", make_work_order(alone))[0], "evaluation")
    assert [one["returns"] for one in greedy] == [one["returns"] for one in made[::2]], (
        "the training is the same"
    )
    best = [one for one in read_records(directory, "snapshot") if one["score"] is not None]
    assert {one["score"] for one in best} <= {one["mean"] for one in made[::2]}


def test_scores_of_a_stochastic_definition_follow_drawn_actions(tmp_path: Path) -> None:
    evaluation = {"every_env_steps": None, "episodes": 6, "policy": "stochastic"}
    definition = make_definition("ppo", **{**SMALL, "evaluation": evaluation})
    directory, _ = execute(tmp_path / "trained", make_work_order(definition))
    (drawn,) = read_records(directory, "evaluation")
    assert (drawn["source"], drawn["final"]) == ("evaluation", True)
    (again,) = evaluate(tmp_path / "again", directory, definition)[0]
    (greedy,) = evaluate(tmp_path / "greedy", directory, definition, policy="greedy")[0]
    assert (again["source"], greedy["source"]) == ("evaluation", "greedy")
    assert greedy["returns"] != again["returns"]
    both, _ = evaluate(tmp_path / "both", directory, definition, policy="both")
    assert [(one["source"], one["returns"]) for one in both] == [
        ("greedy", greedy["returns"]),
        ("evaluation", again["returns"]),
    ]


def test_a_process_of_its_own_draws_the_same_actions(tmp_path: Path) -> None:
    evaluation = {"every_env_steps": 64, "episodes": 3, "policy": "both"}
    order = make_work_order(make_definition("ppo", **{**SMALL, "evaluation": evaluation}))
    made = {}
    for where in ("inline", "process"):
        resources = Resources(evaluation=where)
        directory, _ = execute(tmp_path / where, order.model_copy(update={"resources": resources}))
        records = read_records(directory, "evaluation")
        made[where] = [(one["env_step"], one["source"], one["returns"]) for one in records]
    assert made["process"] == made["inline"]
    assert [source for _, source, _ in made["inline"]] == ["evaluation", "stochastic"] * 2


def test_the_video_shows_the_drawn_episode(tmp_path: Path) -> None:
    """A film plays the episode again, with the same actions."""
    evaluation = {"every_env_steps": None, "episodes": 3, "policy": "stochastic"}
    definition = make_definition("ppo", **{**SMALL, "evaluation": evaluation})
    directory, _ = execute(tmp_path, make_work_order(definition))
    (drawn,) = read_records(directory, "evaluation")
    parsed = RlDefinition.model_validate_json(json.dumps(definition))
    snapshot = load_snapshot(
        directory.snapshots / list_snapshot_ids(directory)[-1],
        run_id=None,
        definition_hash=hash_definition(parsed),
    )
    agent = load_agent(parsed, snapshot.manifest.seed, snapshot, "cpu")
    film = Film(make_rendered(parsed.env), agent, draws_actions=True)
    for episode, expected in enumerate(drawn["returns"]):
        assert sum(1 for _ in film.frames(episode_seed(drawn["seed"], episode), None)) > 1
        assert film.player.episode_return == expected
    film.close()


def test_a_deterministic_policy_is_refused_by_name(tmp_path: Path) -> None:
    definition = make_definition(**SMALL)
    directory, _ = execute(tmp_path / "trained", make_work_order(definition))
    made, report = evaluate(tmp_path / "evaluated", directory, definition, policy="stochastic")
    assert (made, report.outcome) == ([], Outcome.FAILED)
    assert "the policy of dqn is deterministic" in report.failure.message
