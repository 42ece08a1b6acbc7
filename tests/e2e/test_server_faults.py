"""Kills broker and server with SIGKILL under load.

No acknowledged record is lost or stored twice, and every run ends.
"""

import pytest

from tests.e2e.run_history import (
    count_points_per_episode,
    make_cartpole_definition,
    make_slow_definition,
    read_spooled_episodes,
    release_brake,
    wait_for_spooled_episodes,
    wait_for_steps,
    wait_for_success,
)
from tests.support.process_stack import Stack

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_a_killed_broker_loses_no_queued_job(stack: Stack) -> None:
    runs = stack.submit(make_cartpole_definition(2_000), seeds=[0, 1, 2, 3])
    attempt = wait_for_steps(stack, runs[0]["id"], 1)
    stack.kill("broker")
    wait_for_spooled_episodes(stack, attempt["id"])
    stack.start_broker()
    for run in runs:
        done = wait_for_success(stack, run["id"])
        assert len(done["attempts"]) == 1


def test_a_killed_server_loses_and_duplicates_no_record(stack: Stack) -> None:
    (run,) = stack.submit(make_slow_definition(stack, 4_000))
    attempt = wait_for_steps(stack, run["id"], 25)
    stack.kill("server")
    wait_for_spooled_episodes(stack, attempt["id"])
    stack.start_server()
    release_brake(stack)
    done = wait_for_success(stack, run["id"])
    (attempt,) = done["attempts"]
    spooled = read_spooled_episodes(stack.attempt_directory(attempt["id"]))
    assert [number for number, _, _ in spooled] == list(range(1, len(spooled) + 1))
    assert count_points_per_episode(stack, run["id"], len(spooled)) == [1] * len(spooled)
    assert done["progress"]["episode"] == len(spooled)
