"""A network between a worker and its server that loses answers and packets.

The server and the workers are processes. Time passes for a reaper in the test's process alone.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import update

from app.daemons import uptime
from app.daemons.reaper import Reaper
from app.db.clock import SKEW, db_now
from app.db.engine import Database
from app.db.models import AttemptRow, WorkerRow
from app.settings import Settings
from tests.e2e.conftest import make_own_project
from tests.e2e.run_history import (
    count_points_per_episode,
    get_live_attempt,
    make_cartpole_definition,
    make_slow_definition,
    read_episode_returns,
    read_spooled_episodes,
    release_brake,
    wait_for_spooled_episodes,
    wait_for_success,
)
from tests.support.holding_worker import CLAIM_VARIABLE
from tests.support.process_stack import Stack
from tests.support.proxy import Proxy, run_proxy
from tests.support.several_servers import HELD
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes

POOL = WORKER = "far"
"""A pool with one worker, which reaches the server through a proxy."""
UNTRAINED = "no-op"
"""Name of an experiment whose attempts are claimed, and succeed without a trainer."""
SETTINGS = Settings()
STEP_SECONDS = 4.0
"""Less than the step of the clock at which a reaper begins to measure anew."""


@pytest.fixture(scope="module")
def stack_behind_proxy(shared_stack: Stack) -> Iterator[tuple[Stack, Proxy]]:
    with run_proxy(shared_stack.port) as proxy, make_own_project(shared_stack) as stack:
        stack.add_pool(POOL)
        stack.worker_module = HELD
        stack.start_worker(WORKER, proxy.url, POOL, environment={CLAIM_VARIABLE: "4"})
        yield stack, proxy


async def pass_silence(database_url: str, seconds: float) -> None:
    """Lets time pass in which the server hears nothing of the far worker and its attempts."""
    database = Database(database_url)
    is_far = WorkerRow.name == WORKER
    # First, so that the server's dispatcher does not give the far worker what the reaper frees.
    async with database.write() as session:
        await session.execute(
            update(WorkerRow).where(is_far).values(last_heartbeat_at=db_now(-seconds))
        )
    reaper = Reaper(
        database,
        reclaim_seconds=SETTINGS.reclaim_seconds,
        monotonic=lambda: time.monotonic() + SKEW.seconds,
    )
    await reaper.tick()
    for _ in range(int(seconds / STEP_SECONDS)):
        SKEW.seconds += STEP_SECONDS
        await uptime.count_once(database, STEP_SECONDS)
        await reaper.tick()
    SKEW.seconds = 0.0
    async with database.write() as session:
        await session.execute(
            update(AttemptRow)
            .where(AttemptRow.state == "running")
            .values(lease_until=db_now(SETTINGS.lease_seconds - seconds))
        )
    await database.dispose()


def get_attempt_states(stack: Stack, run_id: str) -> list[str]:
    """Returns the states of a run's attempts, the first attempt first."""
    return [attempt["state"] for attempt in stack.get(f"runs/{run_id}")["attempts"]]


def test_lost_claim_answers_cost_no_attempt(stack_behind_proxy: tuple[Stack, Proxy]) -> None:
    """No job stays in the state `starting` because the answer to its claim was lost."""
    stack, proxy = stack_behind_proxy
    proxy.answers_to_lose = 2
    (run,) = stack.submit(make_cartpole_definition(500, name=UNTRAINED), pool=POOL)
    done = wait_for_success(stack, run["id"])
    assert (proxy.lost_answers, len(done["attempts"])) == (2, 1)


def test_a_claim_given_up_is_queued_again(stack_behind_proxy: tuple[Stack, Proxy]) -> None:
    stack, proxy = stack_behind_proxy
    proxy.answers_to_lose = 1_000
    (run,) = stack.submit(make_cartpole_definition(501, name=UNTRAINED), pool=POOL)
    wait_for(lambda: "dispatch.server_away" in stack.log(WORKER), "the worker gives the claim up")
    proxy.answers_to_lose = 0
    queued = stack.wait_for_run(
        run["id"], lambda run: run["attempts"][0]["state"] == "lost", "the claim is given up"
    )
    assert queued["attempts"][0]["cause"] == "worker_lost", "no lease had to expire"
    assert len(wait_for_success(stack, run["id"])["attempts"]) == 2


def start_training(stack: Stack, env_steps: int) -> tuple[str, str]:
    """Starts a training, waits for a verified snapshot and returns the IDs of run and attempt."""
    definition = make_slow_definition(stack, env_steps, snapshot={"every_env_steps": 50})
    (run,) = stack.submit(definition, pool=POOL)
    attempt = wait_for(lambda: get_live_attempt(stack, run["id"]), "an attempt")
    wait_for(
        lambda: list_verified_snapshots(stack, run["id"], attempt["id"]), "a verified snapshot"
    )
    return run["id"], attempt["id"]


def list_verified_snapshots(stack: Stack, run_id: str, attempt_id: str) -> list[str]:
    """Returns the verified snapshots that an attempt took of a run, the newest last."""
    snapshots = [
        row
        for row in stack.get(f"runs/{run_id}/snapshots")["items"]
        if (row["state"], row["attempt_id"]) == ("verified", attempt_id)
    ]
    return [row["id"] for row in sorted(snapshots, key=lambda row: row["env_step"])]


def test_a_partition_shorter_than_the_reclaim_time_keeps_the_attempt(
    stack_behind_proxy: tuple[Stack, Proxy],
) -> None:
    """Row F10: no record is lost, and the attempt is the same."""
    stack, proxy = stack_behind_proxy
    run_id, attempt_id = start_training(stack, 1_500)
    proxy.partition()
    wait_for_spooled_episodes(stack, attempt_id, WORKER)
    shorter = (SETTINGS.lease_seconds + SETTINGS.reclaim_seconds) / 2
    asyncio.run(pass_silence(stack.database_url, shorter))
    assert get_attempt_states(stack, run_id) == ["running"]
    proxy.heal()
    release_brake(stack)
    done = wait_for_success(stack, run_id)
    assert [attempt["id"] for attempt in done["attempts"]] == [attempt_id]
    spooled = read_spooled_episodes(stack.attempt_directory(attempt_id, WORKER))
    assert count_points_per_episode(stack, run_id, len(spooled)) == [1] * len(spooled)
    assert read_episode_returns(stack, run_id, len(spooled)) == [reward for _, _, reward in spooled]


def test_a_longer_partition_ends_the_attempt_as_stale(
    stack_behind_proxy: tuple[Stack, Proxy],
) -> None:
    """Row F10: another worker resumes from the newest verified snapshot.

    The old attempt ends when it reaches the server again.
    """
    stack, proxy = stack_behind_proxy
    run_id, first = start_training(stack, 2_000)
    proxy.partition()
    asyncio.run(pass_silence(stack.database_url, SETTINGS.reclaim_seconds + 60))
    assert get_attempt_states(stack, run_id) == ["lost"]
    stack.start_worker("near", pool=POOL)

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
    assert (second["worker_name"], second["resumed_from"]) == ("near", {run_id: newest})
    supervisors = stack.list_module_processes("workers.supervisor", first)
    assert supervisors, "cut off, the old attempt trains on"
    proxy.heal()
    wait_for(
        lambda: not stack.list_module_processes("workers.supervisor", first),
        "the old attempt ends at first contact",
    )
    assert not stack.list_module_processes("workers.trainer_process", first)
    release_brake(stack)
    done = wait_for_success(stack, run_id)
    assert [(attempt["state"], attempt["cause"]) for attempt in done["attempts"]] == [
        ("lost", "lease_expired"),
        ("ended", "budget"),
    ]
    assert (done["progress"]["env_step"], done["resume_quality"]) == (2_000, "exact")
    episodes = done["progress"]["episode"]
    assert count_points_per_episode(stack, run_id, episodes) == [1] * episodes
    cut_off = read_spooled_episodes(stack.attempt_directory(first, WORKER))
    returns = [reward for _, _, reward in cut_off]
    assert read_episode_returns(stack, run_id, episodes)[: len(returns)] == returns[:episodes], (
        "both attempts had the same curve"
    )
