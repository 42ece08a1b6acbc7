"""Every schedule, submitted through the API and run by real processes.

Each test reads the resulting evaluations, curves and exports from the server.
"""

import io
import json
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
import torch

from tests.e2e.run_history import make_cartpole_definition
from tests.support.process_stack import FINAL, Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def make_small_definition(env_steps: int, **changes: Any) -> dict[str, Any]:
    sections = {
        "evaluation": {"every_env_steps": 200, "episodes": 2},
        "snapshot": {"every_env_steps": 200},
    }
    return make_cartpole_definition(env_steps, **{**sections, **changes})


def wait_for_job_success(stack: Stack, job_id: str) -> dict[str, Any]:
    """Waits until a job has succeeded and returns it."""
    wait_for(lambda: stack.get(f"jobs/{job_id}")["state"] in FINAL, f"the job {job_id} ends")
    job: dict[str, Any] = stack.get(f"jobs/{job_id}")
    assert job["state"] == "succeeded", job["failure"]
    return job


def list_evaluations(stack: Stack, run_id: str, **wanted: Any) -> list[dict[str, Any]]:
    """Returns the evaluations of a run by their env_step."""
    found: list[dict[str, Any]] = stack.get(
        f"runs/{run_id}/evaluations", sort="env_step", limit=500, **wanted
    )["items"]
    return found


def count_points(stack: Stack, run_id: str, series: str) -> int:
    """Returns the number of points of a curve."""
    answer = stack.post(
        "series:query", {"select": [{"run_id": run_id, "series": series}], "buckets": 50}
    )
    return int(answer["series"][0]["points"])


def list_exports(stack: Stack, run_id: str, attempt_id: str) -> set[str]:
    artifacts = stack.get(f"runs/{run_id}/artifacts", limit=500)["items"]
    return {
        one["name"]
        for one in artifacts
        if one["kind"] == "export" and one["attempt_id"] == attempt_id
    }


@pytest.mark.slow
def test_a_test_job_stores_an_evaluation_and_no_snapshot(stack: Stack) -> None:
    definition = make_small_definition(410)
    (run,) = stack.submit(definition, schedule="test")
    done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the test ends")
    assert (done["state"], done["fence"], done["latest_evaluation"]) == ("succeeded", 0, None)
    (only,) = list_evaluations(stack, run["id"])
    assert (only["source"], only["update"], only["episodes"]) == ("test", 1, 1)
    assert count_points(stack, run["id"], "evaluation_of_test/mean") == 1
    assert count_points(stack, run["id"], "evaluation/mean") == 0
    assert not stack.get(f"runs/{run['id']}/snapshots")["items"]
    assert "weights.safetensors" in list_exports(stack, run["id"], done["attempts"][0]["id"])

    (same,) = stack.submit(definition)
    trained = stack.wait_for_run(
        same["id"], lambda run: run["fence"] == 1 and run["state"] in FINAL, "the training ends"
    )
    assert (same["id"], trained["resume_quality"], trained["progress"]["env_step"]) == (
        run["id"],
        "fresh",
        410,
    )
    assert [row["source"] for row in list_evaluations(stack, run["id"], source="test")] == ["test"]


def test_training_schedules_evaluate_save_and_export(stack: Stack) -> None:
    (whole,) = stack.submit(make_small_definition(420), schedule="train_and_evaluate")
    rounds = make_small_definition(
        430,
        snapshot={"every_env_steps": None, "keep_best": False, "keep_last": 5},
        export={"formats": ["weights"]},
    )
    (in_rounds,) = stack.submit(rounds, schedule="continuous_train_and_evaluate")
    for run, last in ((whole, 420), (in_rounds, 430)):
        done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
        assert done["state"] == "succeeded", done["failure"]
        assert [(row["env_step"], row["final"]) for row in list_evaluations(stack, run["id"])] == [
            (200, False),
            (400, False),
            (last, True),
        ]
        assert "weights.safetensors" in list_exports(stack, run["id"], done["attempts"][0]["id"])
        assert count_points(stack, run["id"], "evaluation/mean") == 3
    saved = stack.get(f"runs/{in_rounds['id']}/snapshots", sort="env_step")["items"]
    verified = [one["env_step"] for one in saved if one["state"] == "verified"]
    assert verified == [200, 400, 430], "that before the final evaluation is not kept"


@pytest.mark.slow
def test_a_continuous_evaluation_follows_its_training_on_a_second_slot(stack: Stack) -> None:
    document = make_cartpole_definition(
        9_400,
        evaluation={"every_env_steps": None, "episodes": 1},
        snapshot={"every_env_steps": 1_000},
    )
    (run,) = stack.submit(document)
    job = stack.post(
        f"runs/{run['id']}/jobs", {"schedule": "continuous_eval", "evaluate": {"episodes": 2}}
    )
    path = f"jobs/{job['id']}"
    wait_for(
        lambda: len(_list_evaluations_of_job(stack, run["id"], job["id"])) >= 1,
        "the first snapshot is evaluated",
    )
    training = stack.get(f"runs/{run['id']}")
    assert training["state"] == "running", "it evaluates beside the training"

    stack.post(f"jobs/{training['job_id']}:pause", {})
    wait_for(
        lambda: "Follows the training" in (stack.get(path)["waiting"] or ""),
        "it gives its slot back and says why",
    )
    assert stack.get(path)["state"] == "queued"
    stack.post(f"jobs/{training['job_id']}:resume", {})

    done = wait_for_job_success(stack, job["id"])
    assert done["attempts"] >= 2
    run = stack.get(f"runs/{run['id']}")
    assert (run["state"], len({one["job_id"] for one in run["attempts"]})) == ("succeeded", 2)
    followed = _list_evaluations_of_job(stack, run["id"], job["id"])
    read = [row["snapshot_id"] for row in followed]
    assert len(set(read)) == len(read), "each snapshot is evaluated once, over all attempts"
    newest = next(one for one in stack.get(f"runs/{run['id']}/snapshots")["items"] if one["newest"])
    assert newest["id"] in read, "the last snapshot is evaluated"
    assert {(row["source"], row["episodes"]) for row in followed} == {("evaluation", 2)}
    assert count_points(stack, run["id"], "evaluation/mean") == len(followed) + 1

    beside = stack.post(
        f"runs/{run['id']}/jobs",
        {"schedule": "continuous_eval_on_train_data", "evaluate": {"episodes": 3}},
    )
    wait_for_job_success(stack, beside["id"])
    on_train_data = list_evaluations(stack, run["id"], source="train_data")
    assert newest["id"] in {row["snapshot_id"] for row in on_train_data}
    assert {(row["seed"], row["episodes"]) for row in on_train_data} == {(0, 3)}
    names = {one["name"] for one in stack.get(f"runs/{run['id']}/series")["items"]}
    assert {"evaluation/mean", "evaluation_on_train_data/mean"} <= names
    assert count_points(stack, run["id"], "evaluation_on_train_data/mean") == len(on_train_data)
    for attempt in stack.get(f"runs/{run['id']}")["attempts"]:
        assert not (stack.attempt_directory(attempt["id"]) / "inputs").exists(), (
            "no snapshot is left on the worker's disk"
        )


def _list_evaluations_of_job(stack: Stack, run_id: str, job_id: str) -> list[dict[str, Any]]:
    return [row for row in list_evaluations(stack, run_id) if row["job_id"] == job_id]


def test_an_exported_onnx_file_acts_like_the_policy(stack: Stack) -> None:
    """Covers an export job from the command to the written files."""
    (run,) = stack.submit(make_small_definition(210))
    stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    asked = ("--format", "weights", "--format", "program", "--format", "onnx", "--wait", "--json")
    job = json.loads(stack.run_palestra("export", run["id"], *asked))
    assert (job["state"], job["evaluate"]["formats"]) == (
        "succeeded",
        ["weights", "program", "onnx"],
    )
    artifacts = stack.get(f"runs/{run['id']}/artifacts", limit=500)["items"]
    files = {one["name"]: one["id"] for one in artifacts if one["kind"] == "export"}
    assert set(files) == {"weights.safetensors", "policy.json", "policy.pt2", "policy.onnx"}
    observations = np.random.default_rng(0).normal(size=(256, 4)).astype(np.float32)
    program = torch.export.load(io.BytesIO(stack.read_content(files["policy.pt2"]))).module()
    graph = onnx.load_from_string(stack.read_content(files["policy.onnx"]))
    (acted,) = onnx.reference.ReferenceEvaluator(graph).run(None, {"input_0": observations})
    expected = program(torch.from_numpy(observations)).numpy()
    assert np.array_equal(acted, expected)
    assert len(set(expected.tolist())) == 2
