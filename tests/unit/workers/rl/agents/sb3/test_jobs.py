"""Jobs of Stable-Baselines3 agents in the trainer process, and their outcomes."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.states import Cause, Outcome
from palestra.contract.telemetry import Evaluation
from palestra.contract.work_order import AttemptReport, WorkOrder
from palestra.telemetry.spool import SpoolReader
from tests.support.trainings import load_order_snapshot, make_definition, make_work_order
from tests.unit.workers.rl.agents.sb3.sb3_kit import Sb3TrainingAttempt, make_document
from workers.ipc.attempt_directory import AttemptDirectory
from workers.trainer_process.attempt import main
from workers.trainer_process.schedules import native


def execute(root: Path, given, **order) -> tuple[AttemptDirectory, AttemptReport]:
    made = make_work_order(given, **order)
    directory = AttemptDirectory(root / made.attempt_id)
    directory.create(made.model_dump_json().encode())
    handler = signal.getsignal(signal.SIGTERM)
    try:
        main(["--attempt-dir", str(directory.root)])
    finally:
        signal.signal(signal.SIGTERM, handler)
    return directory, AttemptReport.model_validate_json(directory.report.read_bytes())


def read_records(directory: AttemptDirectory, kind: str) -> list[dict]:
    documents = [json.loads(payload) for payload in SpoolReader(directory.spool).read().payloads]
    return [document for document in documents if document["type"] == kind]


def test_a_training_evaluates_and_exports(tmp_path: Path) -> None:
    given = make_document("PPO", export={"formats": ["weights", "program"]})
    directory, report = execute(tmp_path, given, schedule="train_and_evaluate")
    assert (report.outcome, report.cause, report.env_step) == (
        Outcome.SUCCEEDED,
        Cause.BUDGET,
        200,
    ), report.failure
    exported = {path.name for path in directory.exports.rglob("*") if path.is_file()}
    assert exported == {"weights.safetensors", "policy.json", "policy.pt2"}


def evaluate_again(order: WorkOrder, run: Any, **changes: Any) -> Evaluation:
    """Returns the one evaluation of a training's last snapshot."""
    (made,) = native.evaluate(
        order.definition,
        order.runs[0].model_copy(update=changes),
        load_order_snapshot(order, run.get_snapshot("finish")[0]),
        0.0,
        "cpu",
    )
    return made


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_a_snapshot_is_evaluated_again_with_the_same_result(algorithm, tmp_path: Path) -> None:
    document = make_document(algorithm, loop={"env_steps": 60}, evaluation={"episodes": 4})
    order = make_work_order(document)
    run = Sb3TrainingAttempt(order, tmp_path / "snapshots").run()
    (last,) = [record for record in run.dump_records() if record["type"] == "evaluation"]
    assert last["final"]
    assert list(evaluate_again(order, run, evaluation_seed=last["seed"]).returns) == last["returns"]
    # Stable-Baselines3 draws by torch's global generator.
    drawn = [
        evaluate_again(order, run, evaluation_seed=seed, policy="stochastic").returns
        for seed in (last["seed"], last["seed"], 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert list(drawn[0]) != last["returns"], "it was greedy"


@pytest.mark.parametrize(("algorithm", "at"), [("DQN", 44), ("PPO", 32)])
def test_a_test_job_ends_with_the_first_update(algorithm, at, tmp_path: Path) -> None:
    _, report = execute(tmp_path, make_document(algorithm), schedule="test")
    assert (report.outcome, report.env_step) == (Outcome.SUCCEEDED, at), report.failure
    assert report.update >= 1


def test_a_test_job_without_an_update_fails_with_a_reason(tmp_path: Path) -> None:
    _, report = execute(
        tmp_path, make_document("DQN", parameters={"learning_starts": 5_000}), schedule="test"
    )
    assert report.outcome is Outcome.FAILED
    assert report.failure is not None
    assert "learning_starts" in report.failure.message


@pytest.mark.parametrize("algorithm", ["DQN", "PPO"])
def test_non_finite_losses_end_as_diverged(algorithm, tmp_path: Path) -> None:
    """A hook ends the training when it reads a non-finite loss.

    Some algorithms raise an exception of their own first.
    """
    odd = {"id": "OddWalk-v0", "kwargs": {"nan_reward": True}}
    _, report = execute(
        tmp_path, make_document(algorithm, env=odd, hooks=[{"name": "nan_guard", "updates": 5}])
    )
    assert (report.outcome, report.cause) == (Outcome.FAILED, Cause.DIVERGED), report.failure


def test_an_exception_within_the_library_reaches_the_report_and_the_state_is_saved(
    tmp_path: Path, monkeypatch
) -> None:
    from stable_baselines3 import DQN

    def raise_within_library(self, gradient_steps, batch_size=0):
        raise ZeroDivisionError("within the library")

    monkeypatch.setattr(DQN, "train", raise_within_library)
    directory, report = execute(tmp_path, make_document("DQN"))
    assert (report.outcome, report.cause, report.env_step) == (
        Outcome.FAILED,
        Cause.USER_EXCEPTION,
        44,
    )
    assert report.failure is not None
    assert report.failure.exception == "ZeroDivisionError"
    assert "in raise_within_library" in str(report.failure.traceback)
    assert "off_policy_algorithm.py" in str(report.failure.traceback)
    assert [(row["reason"], row["env_step"]) for row in read_records(directory, "snapshot")] == [
        ("exception", 44)
    ]


@pytest.mark.parametrize(("env", "at"), [("OddRaising-v0", 2), ("OddExiting-v0", 0)])
def test_an_exception_of_the_environment_is_reported_as_such(env, at, tmp_path: Path) -> None:
    _, report = execute(tmp_path, make_document("A2C", env={"id": env}))
    assert (report.outcome, report.cause, report.env_step) == (
        Outcome.FAILED,
        Cause.USER_EXCEPTION,
        at,
    )


def test_an_exception_of_an_evaluation_is_reported_once(tmp_path: Path, monkeypatch) -> None:
    def raise_within_evaluation(self, clock):
        raise ZeroDivisionError("within the evaluation")

    monkeypatch.setattr(
        "workers.rl.evaluate.vector_evaluator.VectorEvaluator.evaluate", raise_within_evaluation
    )
    directory, report = execute(tmp_path, make_document("A2C"))
    assert report.failure is not None
    assert (report.failure.exception, report.env_step) == ("ZeroDivisionError", 75)
    assert [row["reason"] for row in read_records(directory, "snapshot")] == ["exception"]


@pytest.mark.parametrize(
    ("algorithm", "changes", "words"),
    [
        ("DQN", {"learing_rate": 0.1}, ["agent.parameters.learing_rate", "DQN", "'learning_rate'"]),
        ("PPO", {"buffer_size": 10}, ["agent.parameters.buffer_size", "PPO"]),
        ("PPO", {"seed": 3}, ["agent.parameters.seed", "leave it out"]),
        (
            "PPO",
            {"policy_kwargs": {"activation_fn": "os.system"}},
            ["agent.parameters.policy_kwargs.activation_fn", "ReLU"],
        ),
        ("PPO", {"policy_kwargs": {"net_arhc": [8]}}, ["PPO", "net_arhc"]),
        (
            "SAC",
            {"action_noise": {"name": "pink"}},
            ["agent.parameters.action_noise", "ornstein_uhlenbeck"],
        ),
        (
            "SAC",
            {"action_noise": {"name": "normal", "sgima": 1}},
            ["agent.parameters.action_noise.sgima", "'sigma'"],
        ),
        (
            "SAC",
            {"action_noise": {"name": "normal", "sigma": "much"}},
            ["agent.parameters.action_noise", "much"],
        ),
        ("SAC", {"buffer_size": "large"}, ["SAC"]),
    ],
)
def test_wrong_parameters_are_named(algorithm, changes, words, tmp_path: Path) -> None:
    _, report = execute(tmp_path, make_document(algorithm, parameters=changes))
    assert report.outcome is Outcome.FAILED
    assert report.failure is not None
    assert report.failure.exception == "DefinitionError"
    assert all(word in report.failure.message for word in words), report.failure.message


def test_an_unsupported_action_space_is_refused(tmp_path: Path) -> None:
    _, report = execute(tmp_path, make_document("DQN", env={"id": "Pendulum-v1"}))
    assert report.failure is not None
    assert "DQN of Stable-Baselines3" in report.failure.message
    assert "Discrete" in report.failure.message


def test_a_worker_without_the_library_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("workers.rl.agents.sb3.build.importlib.util.find_spec", lambda name: None)
    _, report = execute(tmp_path, make_document("DQN"))
    assert report.cause is Cause.IMPORT_ERROR
    assert report.failure is not None
    assert "pip install 'palestra[sb3]'" in report.failure.message


@pytest.mark.slow
def test_ppo_learns_to_hold_the_pole(tmp_path: Path) -> None:
    tuned = {
        "n_steps": 32,
        "batch_size": 256,
        "n_epochs": 20,
        "gae_lambda": 0.8,
        "gamma": 0.98,
        "learning_rate": 1e-3,
    }
    agent = {"name": "sb3", "algorithm": "PPO", "parameters": tuned}
    sections = {
        "env": {"id": "CartPole-v1", "num_envs": 8},
        "loop": {"env_steps": 40_000},
        "stop": {"success_score": 475},
    }
    sections["evaluation"] = {"every_env_steps": 10_000, "episodes": 20}
    directory, report = execute(tmp_path, {**make_definition(), **sections, "agent": agent})
    assert report.outcome is Outcome.SUCCEEDED, report.failure
    assert max(row["mean"] for row in read_records(directory, "evaluation")) >= 400
