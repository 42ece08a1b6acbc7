"""The main operations in real processes: submit, train, evaluate, export, pause, resume, cancel."""

import json
import subprocess

import psutil
import pytest

from tests.e2e.run_history import (
    count_points_per_episode,
    get_live_attempt,
    make_cartpole_definition,
    make_slow_definition,
    read_spooled_episodes,
    release_brake,
    wait_for_steps,
)
from tests.support.process_stack import FINAL, Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def test_the_server_has_every_record_that_a_training_spooled(stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(3_000, name="whole path"))
    done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    assert (done["state"], done["cause"]) == ("succeeded", "budget")
    assert done["progress"]["env_step"] == 3_000
    (attempt,) = done["attempts"]
    spooled = read_spooled_episodes(stack.attempt_directory(attempt["id"]))
    assert [number for number, _, _ in spooled] == list(range(1, len(spooled) + 1))
    assert count_points_per_episode(stack, run["id"], len(spooled)) == [1] * len(spooled)
    assert done["latest_evaluation"]["final"]
    assert [
        snapshot["state"] for snapshot in stack.get(f"runs/{run['id']}/snapshots")["items"]
    ].count("verified") >= 1


def test_an_evaluate_job_reads_the_newest_snapshot(stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(1_000, name="to evaluate"))
    stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    job = stack.post(
        f"runs/{run['id']}/jobs",
        {"schedule": "evaluate", "evaluate": {"snapshot": "newest", "episodes": 3, "seed": 99}},
    )
    wait_for(lambda: stack.get(f"jobs/{job['id']}")["state"] in FINAL, "the evaluation ends")
    assert stack.get(f"jobs/{job['id']}")["state"] == "succeeded"
    newest = next(
        snapshot
        for snapshot in stack.get(f"runs/{run['id']}/snapshots")["items"]
        if snapshot["newest"]
    )
    evaluation = next(
        row
        for row in stack.get(f"runs/{run['id']}/evaluations")["items"]
        if row["job_id"] == job["id"]
    )
    assert (evaluation["snapshot_id"], evaluation["episodes"], evaluation["seed"]) == (
        newest["id"],
        3,
        99,
    )


def test_a_resume_continues_exactly_where_the_pause_saved(stack: Stack) -> None:
    (run,) = stack.submit(make_slow_definition(stack, 1_000, name="pause"))
    # Beyond the start of learning, so that a resume has to restore the agent's memory.
    wait_for_steps(stack, run["id"], 100)
    job_id = run["job_id"]
    stack.post(f"jobs/{job_id}:pause", {})
    wait_for(lambda: stack.get(f"jobs/{job_id}")["state"] == "paused", "the job is paused")
    paused = stack.get(f"runs/{run['id']}")
    assert paused["state"] == "paused"
    assert get_live_attempt(stack, run["id"]) is None
    release_brake(stack)
    stack.post(f"jobs/{job_id}:resume", {})
    done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    assert done["state"] == "succeeded"
    assert (len(done["attempts"]), done["resume_quality"]) == (2, "exact")
    assert done["progress"]["env_step"] == 1_000
    episodes = done["progress"]["episode"]
    assert count_points_per_episode(stack, run["id"], episodes) == [1] * episodes
    assert (
        count_points_per_episode(stack, run["id"], episodes, superseded=True) == [1] * episodes
    ), "a clean pause supersedes nothing"


# The snapshots from which a pack resumes are tested without processes, too.
@pytest.mark.slow
def test_a_killed_pack_resumes_all_its_runs(stack: Stack) -> None:
    """One job trains three seeds and its trainer is killed.

    The next attempt resumes each run from its own snapshot.
    """
    slow = {"name": "dqn", "learning_starts": 200, "hidden_sizes": [32, 32]}
    runs = stack.submit(
        make_cartpole_definition(1_200, name="pack", agent=slow, snapshot={"every_env_steps": 300}),
        seeds=[0, 1, 2],
        resources={"pack": 3},
    )
    first = runs[0]["id"]

    def has_snapshot_of_each_run() -> bool:
        found = [stack.get(f"runs/{run['id']}/snapshots")["items"] for run in runs]
        return all(
            any(snapshot["state"] == "verified" for snapshot in snapshots) for snapshots in found
        )

    wait_for(has_snapshot_of_each_run, "each run has a snapshot on the server")
    assert len({stack.get(f"runs/{run['id']}")["job_id"] for run in runs}) == 1
    attempt = get_live_attempt(stack, first)
    assert attempt is not None
    stack.list_module_processes("workers.trainer_process", attempt["id"])[0].kill()
    for run in runs:
        done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
        assert (done["state"], done["cause"], done["progress"]["env_step"]) == (
            "succeeded",
            "budget",
            1_200,
        )
        assert (len(done["attempts"]), done["resume_quality"]) == (2, "exact")
        episodes = done["progress"]["episode"]
        assert count_points_per_episode(stack, run["id"], episodes) == [1] * episodes


def test_a_job_is_shown_as_cancelled_after_its_processes_ended(stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(500_000, name="cancel"))
    attempt = wait_for_steps(stack, run["id"], 1)
    (trainer,) = stack.list_module_processes("workers.trainer_process", attempt["id"])
    stack.post(f"jobs/{run['job_id']}:cancel", {"reason": "enough"})
    wait_for(
        lambda: stack.get(f"jobs/{run['job_id']}")["state"] == "cancelled",
        "the job is cancelled",
    )
    assert not psutil.pid_exists(trainer.pid)
    assert stack.get(f"runs/{run['id']}")["state"] == "cancelled"


@pytest.mark.slow
def test_a_third_run_waits_for_one_of_two_slots(stack: Stack) -> None:
    runs = stack.submit(make_cartpole_definition(3_300, name="three seeds"), seeds=[0, 1, 2])
    third = runs[2]["id"]

    def is_third_run_waiting() -> bool:
        jobs = {
            job["run_ids"][0]: job
            for job in stack.get("jobs", experiment=runs[0]["experiment_id"])["items"]
        }
        return [jobs[run["id"]]["state"] for run in runs] == [
            "running",
            "running",
            "queued",
        ] and bool(jobs[third]["waiting"])

    wait_for(is_third_run_waiting, "two runs train, the third waits and says why")
    for run in runs:
        done = stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
        assert done["state"] == "succeeded"


@pytest.mark.slow
def test_a_released_slot_is_used_without_delay(stack: Stack) -> None:
    """The next dispatch message is sent with the report of an attempt's end, before its slot is
    free.
    """
    runs = stack.submit(
        make_cartpole_definition(300, name="one after the other"), seeds=list(range(6))
    )
    for run in runs:
        stack.wait_for_run(run["id"], lambda run: run["state"] in FINAL, "the run ends")
    lines = [line for line in stack.log("server").splitlines() if '"dispatcher.sent"' in line]
    sent = [job for line in lines for job in json.loads(line)["jobs"]]
    assert {sent.count(run["job_id"]) for run in runs} == {1}, "no assignment expired unclaimed"


def test_sigterm_to_the_worker_saves_a_snapshot_and_ends_all_processes(stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(500_000, name="drain"))
    wait_for_steps(stack, run["id"], 1)
    stack.stop("worker")
    assert not stack.list_module_processes("workers.trainer_process")
    assert not stack.list_module_processes("workers.supervisor")
    assert any(
        snapshot["state"] == "verified"
        for snapshot in stack.get(f"runs/{run['id']}/snapshots")["items"]
    )
    wait_for(
        lambda: stack.get(f"runs/{run['id']}")["state"] == "queued",
        "the run waits for another worker",
    )


def test_no_token_is_on_a_command_line_or_in_a_log(stack: Stack) -> None:
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    logs = "".join(stack.log(name) for name in stack.processes)
    for token in stack.tokens.values():
        assert token not in lines
        assert token not in logs
