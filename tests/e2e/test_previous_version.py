"""A worker of the previous version with the present server.

The test applies as long as workers of that version are supported: changes of answers, routes and
tables must not break it. The commit is in `tests/support/previous_version.py`.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks._chaos.curves import list_differences, read_history
from tests.e2e.conftest import QUICK
from tests.e2e.run_history import (
    count_points_per_episode,
    find_trainer,
    make_cartpole_definition,
    read_spooled_episodes,
    suspended,
    wait_for_spooled_episodes,
    wait_for_steps,
)
from tests.support.previous_version import write_previous_version
from tests.support.process_stack import REPOSITORY, Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.extended]

ENV_STEPS = 4_000


def make_definition(number: int) -> dict[str, Any]:
    """Returns the definition of one of several experiments with the same training.

    The definitions differ in a target score that is never reached.
    """
    agent = {"name": "dqn", "learning_starts": 200, "train_every": 1, "hidden_sizes": [32, 32]}
    score = {"success_score": 10_000 + number}
    return make_cartpole_definition(ENV_STEPS, name=f"training {number}", agent=agent, stop=score)


def submit_definition(stack: Stack, number: int, pool: str) -> str:
    (run,) = stack.submit(make_definition(number), seeds=[1], pool=pool)
    return str(run["id"])


def find_source_trees(stack: Stack, attempt: dict[str, Any]) -> set[Path]:
    """Returns the source trees that the live supervisor and trainer of an attempt run from."""
    (supervisor,) = stack.list_module_processes("workers.supervisor", attempt["id"])
    (trainer, *_) = stack.list_module_processes("workers.trainer_process", attempt["id"])
    paths = [process.environ()["PYTHONPATH"] for process in (supervisor, trainer)]
    return {Path(path.split(os.pathsep)[0]) for path in paths}


def find_tree_of_server(stack: Stack) -> Path:
    return Path(psutil.Process(stack.processes["server"].pid).cwd())


def pause_and_resume(stack: Stack, run_id: str) -> None:
    job_id = stack.get(f"runs/{run_id}")["job_id"]
    stack.post(f"jobs/{job_id}:pause", {})
    wait_for(lambda: stack.get(f"jobs/{job_id}")["state"] == "paused", "the job is paused")
    stack.post(f"jobs/{job_id}:resume", {})


def read_history_of_whole_run(
    stack: Stack, run_id: str, worker: str, attempts: int
) -> dict[str, Any]:
    """Waits for the end of a run and checks that its curve has no gap; returns its history."""
    run = stack.wait_for_run(run_id, lambda run: run["state"] == "succeeded", "the run succeeds")
    assert [row["outcome"] for row in run["attempts"]].count("succeeded") == 1
    ends = [(row["outcome"], row["cause"], row["failure"]) for row in run["attempts"]]
    assert len(ends) == attempts, f"{ends}\n{stack.log(worker)[-4_000:]}"
    spooled = sorted(
        {
            row
            for attempt in run["attempts"]
            for row in read_spooled_episodes(stack.attempt_directory(attempt["id"], worker))
        }
    )
    assert [number for number, _, _ in spooled] == list(range(1, len(spooled) + 1))
    assert count_points_per_episode(stack, run_id, len(spooled)) == [1] * len(spooled)
    assert run["progress"]["env_step"] == ENV_STEPS
    return read_history(stack, run_id)


def test_a_worker_of_the_previous_version_trains_on_while_the_server_is_upgraded(
    directory: Path,
) -> None:
    previous = write_previous_version(directory / "previous")
    stack = Stack(directory / "data", settings=QUICK)
    stack.trees = dict.fromkeys(("server", "worker", "second"), previous)
    with stack:
        through = submit_definition(stack, 0, "default")
        attempt = wait_for_steps(stack, through, 300)
        assert (find_tree_of_server(stack), find_source_trees(stack, attempt)) == (
            previous,
            {previous},
        )
        assert stack.stop("server") == 0
        wait_for_spooled_episodes(stack, attempt["id"])
        # It has to train on after the upgrade, too, however long that takes.
        with suspended(find_trainer(stack, attempt["id"])):
            del stack.trees["server"]
            stack.run("app.db", "upgrade")
            stack.start_server()
        assert (find_tree_of_server(stack), find_source_trees(stack, attempt)) == (
            REPOSITORY,
            {previous},
        )

        # A worker of the previous version enrols with the present server, beside a present one.
        for pool in ("second", "present"):
            stack.add_pool(pool)
        with ThreadPoolExecutor() as threads:
            list(
                threads.map(lambda name: stack.start_worker(name, pool=name), ("second", "present"))
            )
        paused, present = (
            submit_definition(stack, 1, "second"),
            submit_definition(stack, 2, "present"),
        )
        assert find_source_trees(stack, wait_for_steps(stack, paused, 300)) == {previous}
        assert find_source_trees(stack, wait_for_steps(stack, present, 300)) == {REPOSITORY}
        pause_and_resume(stack, paused)

        expected = read_history_of_whole_run(stack, present, "present", 1)
        assert len(expected["curves"]) >= 3
        assert (
            list_differences(expected, read_history_of_whole_run(stack, through, "worker", 1)) == []
        )
        assert (
            list_differences(expected, read_history_of_whole_run(stack, paused, "second", 2)) == []
        )
