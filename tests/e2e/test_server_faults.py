"""Kills broker and server with SIGKILL under load.

No acknowledged record is lost or stored twice, and every run ends.
"""

import time

import pytest

from tests.e2e.run_history import (
    count_points_per_episode,
    get_live_attempt,
    make_cartpole_definition,
    read_spooled_episodes,
    wait_for_success,
)
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.mark.slow
def test_a_killed_broker_loses_no_queued_job(stack: Stack) -> None:
    runs = stack.submit(make_cartpole_definition(2_000), seeds=[0, 1, 2, 3])
    wait_for(lambda: get_live_attempt(stack, runs[0]["id"]), "the first run starts")
    stack.kill("broker")
    time.sleep(2)
    stack.start_broker()
    for run in runs:
        done = wait_for_success(stack, run["id"])
        assert len(done["attempts"]) == 1


def test_a_killed_server_loses_and_duplicates_no_record(stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(24_000))
    for _ in range(3):
        before = stack.get(f"runs/{run['id']}")["progress"]["env_step"]
        stack.wait_for_run(
            run["id"],
            lambda run, before=before: run["progress"]["env_step"] > before + 1_000,
            "the run trains",
        )  # type: ignore[misc]
        stack.kill("server")
        time.sleep(1)
        stack.start_server()
    done = wait_for_success(stack, run["id"])
    (attempt,) = done["attempts"]
    spooled = read_spooled_episodes(stack.attempt_directory(attempt["id"]))
    assert [number for number, _, _ in spooled] == list(range(1, len(spooled) + 1))
    assert count_points_per_episode(stack, run["id"], len(spooled)) == [1] * len(spooled)
    assert done["progress"]["episode"] == len(spooled)
