"""A distribution that only the worker has installed.

Its agent is submitted, trained, paused, resumed and evaluated.
"""

from typing import Any

import httpx
import pytest

from palestra.contract.agents import BUILTIN_AGENTS
from tests.e2e.run_history import make_slow_definition, release_brake
from tests.support.process_stack import FINAL, Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def make_climber_definition(env_steps: int, **parameters: Any) -> dict[str, Any]:
    return {
        "kind": "rl",
        "name": "hill climber",
        "env": {"id": "CartPole-v1"},
        "agent": {"name": "hill_climber", "parameters": parameters},
        "loop": {"env_steps": env_steps, "epoch_env_steps": 5_000},
        "evaluation": {"every_env_steps": 10_000, "episodes": 5},
        "snapshot": {"every_env_steps": 10_000},
    }


def submit_refused(stack: Stack, definition: dict[str, Any], **more: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {stack.tokens['user']}"}
    answer = httpx.post(
        f"{stack.url}/api/v1/experiments",
        json={"definition": definition, **more},
        headers=headers,
        trust_env=False,
    )
    assert answer.status_code == 422, answer.text
    problem: dict[str, Any] = answer.json()
    return problem


@pytest.mark.slow
def test_a_third_party_agent_trains_pauses_resumes_and_is_evaluated(stack: Stack) -> None:
    offered = {
        agent["name"]: agent
        for agent in stack.get("catalogue", pool="default")["catalogue"]["agents"]
    }
    assert set(offered) == {*BUILTIN_AGENTS, "hill_climber", "odd"}
    (run,) = stack.submit(make_climber_definition(100_000, noise=0.7))
    experiment = stack.get(f"experiments/{run['experiment_id']}")
    assert (experiment["agent"], experiment["code"]) == (
        "hill_climber",
        offered["hill_climber"]["code"],
    )
    assert experiment["definition"]["agent"]["parameters"] == {"noise": 0.7, "patience": 1}

    running = stack.wait_for_run(
        run["id"], lambda run: run["progress"]["env_step"] > 3_000, "the run trains"
    )
    job = running["job_id"]
    stack.post(f"jobs/{job}:pause", {})
    wait_for(lambda: stack.get(f"jobs/{job}")["state"] == "paused", "the job is paused")
    paused_at = stack.get(f"runs/{run['id']}")["progress"]["env_step"]
    assert paused_at < 100_000
    (newest,) = [
        snapshot
        for snapshot in stack.get(f"runs/{run['id']}/snapshots")["items"]
        if snapshot["newest"]
    ]
    assert {"policy/weights.npy", "climber.json"} <= {file["name"] for file in newest["files"]}

    stack.post(f"jobs/{job}:resume", {})
    done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    assert (done["state"], done["resume_quality"], len(done["attempts"])) == (
        "succeeded",
        "statistical",
        2,
    )
    assert done["progress"]["env_step"] == 100_000
    assert done["latest_evaluation"]["mean"] > 100, "a pole that falls at once gives about 10"

    names = {
        series["name"]: series
        for series in stack.get(f"runs/{run['id']}/series", limit=500)["items"]
    }
    assert names["agent/climbs"]["last_value"] > 2
    assert names["agent/best_return"]["last_value"] > 100


@pytest.mark.slow
def test_an_evaluate_job_loads_the_agents_own_files(stack: Stack) -> None:
    (run,) = stack.submit(make_climber_definition(8_000, noise=0.6))
    stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    job = stack.post(
        f"runs/{run['id']}/jobs", {"schedule": "evaluate", "evaluate": {"episodes": 3, "seed": 5}}
    )
    wait_for(lambda: stack.get(f"jobs/{job['id']}")["state"] in FINAL, "the evaluation ends")
    assert stack.get(f"jobs/{job['id']}")["failure"] is None
    (made,) = [
        row
        for row in stack.get(f"runs/{run['id']}/evaluations")["items"]
        if row["job_id"] == job["id"]
    ]
    assert (made["episodes"], made["seed"]) == (3, 5)


def test_unsupported_definitions_are_refused_with_a_remedy(stack: Stack) -> None:
    problem = submit_refused(stack, make_climber_definition(1_000, noise=-1))
    assert (problem["code"], problem["errors"][0]["pointer"]) == (
        "invalid_parameters",
        "/definition/agent/parameters/noise",
    )
    other = {**make_climber_definition(1_000), "agent": {"name": "fragile"}}
    assert submit_refused(stack, other)["code"] == "unknown_agent", "its schema points elsewhere"
    code = {
        "kind": "entrypoint",
        "distribution": "tiny-agents",
        "version": "1.2.0",
        "digest": "0" * 64,
    }
    assert (
        submit_refused(stack, make_climber_definition(1_000), code=code)["code"] == "code_mismatch"
    )


def test_a_worker_refuses_a_job_after_the_agents_code_changed(stack: Stack) -> None:
    """The worker's catalogue is made at its start, so the code can change afterwards."""
    source = stack.directory / "site" / "tiny_agents" / "climber.py"
    before = source.read_text()
    try:
        source.write_text(before + "\nCHANGED = 1\n")
        (run,) = stack.submit(make_climber_definition(2_000, noise=0.8))
        ended = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    finally:
        source.write_text(before)
    assert (ended["state"], ended["cause"]) == ("failed", "code_changed")
    assert "submit the definition again" in ended["failure"]["message"]
    assert ended["progress"]["env_step"] == 0


def test_a_run_with_changed_code_stays_paused_until_the_code_is_restored(
    stack: Stack,
) -> None:
    """A resume with changed code is refused and the run does not fail.

    An option permits the resume, and the run then shows the changed code.
    """
    source = stack.directory / "site" / "tiny_agents" / "climber.py"
    before = source.read_text()
    definition = make_climber_definition(4_000, noise=0.55)
    definition["env"] = make_slow_definition(stack, 4_000)["env"]
    (run,) = stack.submit(definition)
    running = stack.wait_for_run(
        run["id"], lambda run: run["progress"]["env_step"] > 20, "the run trains"
    )
    stack.post(f"jobs/{running['job_id']}:pause", {})
    stack.wait_for_run(run["id"], lambda run: run["state"] == "paused", "the run is paused")
    try:
        source.write_text(before + "\nCHANGED = 2\n")
        stack.run_palestra("resume", run["id"])
        found = stack.wait_for_run(
            run["id"],
            lambda run: (run["state"], run["cause"]) == ("paused", "code_changed"),
            "it is paused again",
        )
        assert "--allow-code-change" in found["failure"]["message"]
        assert found["job_id"] == running["job_id"]
        stack.run_palestra("resume", run["id"], "--allow-code-change")
        stack.wait_for_run(
            run["id"],
            lambda run: run["progress"]["env_step"] > found["progress"]["env_step"],
            "it trains with the other code",
        )
        stack.post(f"jobs/{running['job_id']}:cancel", {})
        stack.wait_for_run(run["id"], lambda run: run["state"] == "cancelled", "it is cancelled")
    finally:
        source.write_text(before)
    other = stack.get(f"runs/{run['id']}")["attempts"][-1]["other_code"]
    assert other["distribution"] == "tiny-agents"
    stack.run_palestra("retry", run["id"])
    going = stack.wait_for_run(
        run["id"], lambda run: run["state"] in {"running", "succeeded"}, "it is tried again"
    )
    assert going["resume_quality"] == "statistical", "from its newest snapshot"
    assert going["attempts"][-1]["resumed_from"][run["id"]] is not None
    if going["state"] == "running":
        stack.post(f"jobs/{going['job_id']}:cancel", {})
    release_brake(stack)


def test_a_test_job_runs_all_steps_of_a_third_party_agent(stack: Stack) -> None:
    (run,) = stack.submit(make_climber_definition(4_000, noise=0.9), schedule="test")
    (job,) = stack.get("jobs", experiment=run["experiment_id"])["items"]
    wait_for(lambda: stack.get(f"jobs/{job['id']}")["state"] in FINAL, "the test ends")
    assert stack.get(f"jobs/{job['id']}")["failure"] is None


@pytest.mark.slow
def test_an_algorithm_of_stable_baselines3_trains_pauses_resumes_and_is_evaluated(
    stack: Stack,
) -> None:
    parameters = {"n_steps": 64, "batch_size": 64, "n_epochs": 2}
    definition = {
        **make_climber_definition(6_000),
        "agent": {"name": "sb3", "algorithm": "PPO", "parameters": parameters},
    }
    (run,) = stack.submit({**definition, "evaluation": {"every_env_steps": 2_000, "episodes": 2}})
    running = stack.wait_for_run(
        run["id"], lambda run: run["progress"]["env_step"] > 500, "the run trains"
    )
    stack.post(f"jobs/{running['job_id']}:pause", {})
    wait_for(
        lambda: stack.get(f"jobs/{running['job_id']}")["state"] == "paused", "the job is paused"
    )
    assert stack.get(f"runs/{run['id']}")["progress"]["env_step"] < 6_000
    stack.post(f"jobs/{running['job_id']}:resume", {})
    done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    assert (done["state"], done["resume_quality"], done["progress"]["env_step"]) == (
        "succeeded",
        "statistical",
        6_000,
    ), done["failure"]
    evaluations = stack.get(f"runs/{run['id']}/evaluations")["items"]
    assert sorted(row["env_step"] for row in evaluations) == [2_000, 4_000, 6_000]
    names = {series["name"] for series in stack.get(f"runs/{run['id']}/series", limit=500)["items"]}
    assert {"loss/policy", "loss/value", "policy/kl"} <= names

    job = stack.post(
        f"runs/{run['id']}/jobs", {"schedule": "evaluate", "evaluate": {"episodes": 3, "seed": 5}}
    )
    wait_for(lambda: stack.get(f"jobs/{job['id']}")["state"] in FINAL, "the evaluation ends")
    assert stack.get(f"jobs/{job['id']}")["failure"] is None
    wrong = {
        **definition,
        "env": {"id": "Pendulum-v1"},
        "agent": {"name": "sb3", "algorithm": "DQN"},
    }
    assert submit_refused(stack, wrong)["code"] == "action_space_mismatch"


def make_digits_definition(updates: int, **sections: Any) -> dict[str, Any]:
    return {
        "kind": "supervised",
        "name": "digits",
        "estimator": {"name": "classifier", "params": {"classes": 10}},
        "train_input": {"name": "digits", "params": {"images": 1_000}},
        "evaluation_input": {"name": "digits", "params": {"images": 300, "batch_size": 100}},
        "loop": {"updates": updates, "epoch_updates": 200},
        "evaluation": {"every_updates": 500, "metric": "accuracy", "goal": "maximize"},
        "snapshot": {"every_updates": 400},
        **sections,
    }


@pytest.mark.slow
def test_a_supervised_run_pauses_resumes_exactly_and_shows_its_metrics(stack: Stack) -> None:
    (run,) = stack.submit(make_digits_definition(4_000))
    running = stack.wait_for_run(
        run["id"], lambda run: run["progress"]["update"] > 300, "the run trains"
    )
    stack.post(f"jobs/{running['job_id']}:pause", {})
    wait_for(
        lambda: stack.get(f"jobs/{running['job_id']}")["state"] == "paused", "the job is paused"
    )
    stack.post(f"jobs/{running['job_id']}:resume", {})
    done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    assert (done["state"], done["resume_quality"], done["progress"]["update"]) == (
        "succeeded",
        "exact",
        4_000,
    )
    latest = done["latest_evaluation"]
    assert latest["mean"] == latest["metrics"]["accuracy"] > 0.9
    names = {
        series["name"]: series
        for series in stack.get(f"runs/{run['id']}/series", limit=500)["items"]
    }
    assert {"evaluation/accuracy", "evaluation/loss", "evaluation/mean", "loss/train"} <= set(names)
    assert "evaluation/length_mean" not in names
    query = {
        "select": [{"run_id": run["id"], "series": "evaluation/accuracy"}],
        "x": "update",
        "buckets": 8,
    }
    (curve,) = stack.post("series:query", query)["series"]
    assert sum(curve["n"]) == 8

    job = stack.post(
        f"runs/{run['id']}/jobs", {"schedule": "evaluate", "evaluate": {"snapshot": "best"}}
    )
    wait_for(lambda: stack.get(f"jobs/{job['id']}")["state"] in FINAL, "the evaluation ends")
    (made,) = [
        row
        for row in stack.get(f"runs/{run['id']}/evaluations")["items"]
        if row["job_id"] == job["id"]
    ]
    assert made["metrics"] == done["best_evaluation"]["metrics"]


def test_a_supervised_definition_that_does_not_fit_is_refused(stack: Stack) -> None:
    problem = submit_refused(
        stack,
        make_digits_definition(100, estimator={"name": "classifier", "params": {"classes": 1}}),
    )
    assert (problem["code"], problem["errors"][0]["pointer"]) == (
        "invalid_parameters",
        "/definition/estimator/params/classes",
    )
