"""Kills trainer, worker and supervisor with SIGKILL.

Every run ends, and its curve has no gap and no duplicate.
"""

import time

import psutil
import pytest

from tests.e2e.run_history import (
    count_points_per_episode,
    get_live_attempt,
    make_cartpole_definition,
    wait_for_success,
)
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


def _find_trainer(stack: Stack, attempt_id: str) -> psutil.Process:
    def find() -> psutil.Process | None:
        trainers = stack.list_module_processes("workers.trainer_process", attempt_id)
        return trainers[0] if trainers else None

    return wait_for(find, "the trainer's process")


def _start_training(stack: Stack, env_steps: int, past: int) -> tuple[str, str, psutil.Process]:
    """Starts a training and waits until env_step `past`; returns run, attempt and
    trainer process.
    """
    (run,) = stack.submit(make_cartpole_definition(env_steps))
    stack.wait_for_run(run["id"], lambda run: run["progress"]["env_step"] > past, "the run trains")
    attempt = get_live_attempt(stack, run["id"])
    assert attempt is not None
    return run["id"], attempt["id"], _find_trainer(stack, attempt["id"])


def test_after_a_killed_trainer_the_next_attempt_resumes_the_newest_snapshot(stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(12_000))

    stack.wait_for_run(
        run["id"], lambda run: run["snapshots"]["verified"], "a snapshot is verified"
    )
    first = get_live_attempt(stack, run["id"])
    assert first is not None
    trainer = _find_trainer(stack, first["id"])

    def is_frozen_past_a_snapshot() -> bool:
        # Otherwise the next snapshot could be written between the check and the kill.
        trainer.suspend()
        # The records that the trainer wrote arrive meanwhile.
        time.sleep(1.5)
        seen = stack.get(f"runs/{run['id']}")
        if seen["progress"]["env_step"] >= seen["snapshots"]["written"] + 300:
            return True
        trainer.resume()
        return False

    wait_for(is_frozen_past_a_snapshot, "the run is well past its newest snapshot")
    trainer.kill()
    killed = time.monotonic()

    def find_second_attempt() -> dict[str, object] | None:
        attempt = get_live_attempt(stack, run["id"])
        return (
            attempt
            if attempt and attempt["number"] == 2 and attempt["state"] == "running"
            else None
        )

    second = wait_for(find_second_attempt, "attempt 2 runs")
    assert time.monotonic() - killed < 15
    resumed_from = second["resumed_from"][run["id"]]  # type: ignore[index]
    assert resumed_from is not None
    done = wait_for_success(stack, run["id"])
    assert done["progress"]["env_step"] == 12_000
    assert done["resume_quality"] == "exact"
    episodes = done["progress"]["episode"]
    assert count_points_per_episode(stack, run["id"], episodes) == [1] * episodes
    assert sum(count_points_per_episode(stack, run["id"], episodes, superseded=True)) > episodes, (
        "the first attempt's points are kept"
    )


def test_a_trainer_runs_on_after_its_worker_is_killed_and_the_next_worker_adopts_it(
    stack: Stack,
) -> None:
    run_id, attempt_id, trainer = _start_training(stack, 18_000, past=1_000)
    stack.kill("worker")
    before = stack.get(f"runs/{run_id}")["progress"]["env_step"]
    stack.wait_for_run(
        run_id,
        lambda run: run["progress"]["env_step"] > before + 1_000,
        "training goes on without a worker",
    )
    assert trainer.is_running()
    stack.start_worker()
    (worker,) = [worker for worker in stack.get("workers")["items"] if worker["state"] == "online"]
    assert [slot["attempt_id"] for slot in worker["slots"] if slot["attempt_id"]] == [attempt_id]
    done = wait_for_success(stack, run_id)
    assert len(done["attempts"]) == 1


def test_a_trainer_ends_with_its_killed_supervisor_and_the_run_is_resumed(stack: Stack) -> None:
    run_id, attempt_id, trainer = _start_training(stack, 10_000, past=2_500)
    supervisors = stack.list_module_processes("workers.supervisor", attempt_id)
    assert len(supervisors) == 1
    supervisors[0].kill()
    wait_for(
        lambda: not trainer.is_running() or trainer.status() == psutil.STATUS_ZOMBIE,
        "the trainer dies with its supervisor",
    )
    done = wait_for_success(stack, run_id)
    assert len(done["attempts"]) == 2
