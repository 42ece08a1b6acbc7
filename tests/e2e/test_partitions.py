"""A network between a worker and its server that loses answers and packets."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.run_history import (
    count_points_per_episode,
    get_live_attempt,
    make_cartpole_definition,
    read_episode_returns,
    read_spooled_episodes,
    wait_for_success,
)
from tests.support.process_stack import Stack
from tests.support.proxy import Proxy, run_proxy
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

QUICK = {
    "PALESTRA_HEARTBEAT_SECONDS": "0.5",
    "PALESTRA_RENEW_SECONDS": "1",
    "PALESTRA_LEASE_SECONDS": "6",
    "PALESTRA_RECLAIM_SECONDS": "15",
}


@pytest.fixture
def stack_behind_proxy() -> Iterator[tuple[Stack, Proxy]]:
    """A stack whose worker reaches the server through a proxy."""
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    stack = Stack(directory, settings=QUICK)
    try:
        with run_proxy(stack.port) as proxy:
            stack.worker_url = proxy.url
            with stack:
                yield stack, proxy
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_lost_claim_answers_cost_no_attempt_and_a_claim_given_up_is_queued_within_seconds(
    stack_behind_proxy: tuple[Stack, Proxy],
) -> None:
    """No job stays in the state `starting` because the answer to its claim was lost."""
    stack, proxy = stack_behind_proxy
    proxy.answers_to_lose = 2
    (run,) = stack.submit(make_cartpole_definition(1_000))
    done = wait_for_success(stack, run["id"])
    assert (proxy.lost_answers, len(done["attempts"])) == (2, 1)
    proxy.answers_to_lose = 1_000
    (other,) = stack.submit(make_cartpole_definition(1_000), seeds=[7])[-1:]
    wait_for(lambda: "dispatch.server_away" in stack.log("worker"), "the worker gives the claim up")
    proxy.answers_to_lose = 0
    queued = stack.wait_for_run(
        other["id"], lambda run: run["attempts"][0]["state"] == "lost", "the claim is given up"
    )
    assert queued["attempts"][0]["cause"] == "worker_lost"
    assert len(wait_for_success(stack, other["id"])["attempts"]) == 2


def start_training(stack: Stack, env_steps: int) -> tuple[str, str]:
    """Starts a training, waits for a verified snapshot and returns the run ID and its attempt."""
    (run,) = stack.submit(make_cartpole_definition(env_steps))
    attempt = wait_for(lambda: get_live_attempt(stack, run["id"]), "an attempt")
    snapshots = partial(list_verified_snapshots, stack, run["id"], attempt["id"])
    wait_for(snapshots, "a verified snapshot")
    return run["id"], attempt["id"]


def list_verified_snapshots(stack: Stack, run_id: str, attempt_id: str) -> list[str]:
    """Returns the verified snapshots that an attempt took of a run, the newest last."""
    found = [
        row
        for row in stack.get(f"runs/{run_id}/snapshots")["items"]
        if (row["state"], row["attempt_id"]) == ("verified", attempt_id)
    ]
    return [row["id"] for row in sorted(found, key=lambda row: row["env_step"])]


def test_a_partition_shorter_than_the_reclaim_time_keeps_the_attempt(
    stack_behind_proxy: tuple[Stack, Proxy],
) -> None:
    """Row F10: no record is lost, and the attempt is the same."""
    stack, proxy = stack_behind_proxy
    run_id, attempt_id = start_training(stack, 20_000)
    proxy.partition()
    time.sleep(9)
    proxy.heal()
    done = wait_for_success(stack, run_id)
    assert [attempt["id"] for attempt in done["attempts"]] == [attempt_id]
    spooled = read_spooled_episodes(stack.attempt_directory(attempt_id))
    assert count_points_per_episode(stack, run_id, len(spooled)) == [1] * len(spooled)
    assert read_episode_returns(stack, run_id, len(spooled)) == [reward for _, _, reward in spooled]


def test_a_longer_partition_ends_the_attempt_as_stale(
    stack_behind_proxy: tuple[Stack, Proxy],
) -> None:
    """Row F10: another worker resumes from the newest verified snapshot.

    The old attempt ends when it reaches the server again.
    """
    stack, proxy = stack_behind_proxy
    run_id, first = start_training(stack, 30_000)
    stack.start_worker("second", stack.url)
    proxy.partition()

    def find_second_attempt() -> dict[str, Any] | None:
        attempt = get_live_attempt(stack, run_id)
        return (
            attempt
            if attempt and attempt["number"] == 2 and attempt["state"] == "running"
            else None
        )

    second = wait_for(find_second_attempt, "the run goes on elsewhere")
    # What the server had received when it was cut off may be verified a little later.
    newest = list_verified_snapshots(stack, run_id, first)[-1]
    assert (second["worker_name"], second["resumed_from"]) == ("second", {run_id: newest})
    supervisors = stack.list_module_processes("workers.supervisor", first)
    assert supervisors, "cut off, the old attempt trains on"
    proxy.heal()
    wait_for(
        lambda: not stack.list_module_processes("workers.supervisor", first),
        "the old attempt ends at first contact",
    )
    assert not stack.list_module_processes("workers.trainer_process", first)
    done = wait_for_success(stack, run_id)
    assert [(attempt["state"], attempt["cause"]) for attempt in done["attempts"]] == [
        ("lost", "lease_expired"),
        ("ended", "budget"),
    ]
    assert (done["progress"]["env_step"], done["resume_quality"]) == (30_000, "exact")
    episodes = done["progress"]["episode"]
    assert count_points_per_episode(stack, run_id, episodes) == [1] * episodes
    cut_off = [reward for _, _, reward in read_spooled_episodes(stack.attempt_directory(first))]
    assert read_episode_returns(stack, run_id, episodes)[: len(cut_off)] == cut_off[:episodes], (
        "both attempts had the same curve"
    )
