"""Kills trainer, worker and supervisor with SIGKILL.

Every run ends, and its curve has no gap and no duplicate. A worker that cannot start trainers fails
no run.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import psutil
import pytest

from tests.e2e.run_history import (
    count_points_per_episode,
    find_trainer,
    make_cartpole_definition,
    make_slow_definition,
    read_spooled_records,
    release_brake,
    suspend,
    wait_for_steps,
    wait_for_success,
)
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def test_after_a_killed_trainer_the_next_attempt_resumes_the_newest_snapshot(stack: Stack) -> None:
    (run,) = stack.submit(make_slow_definition(stack, 1_000, snapshot={"every_env_steps": 100}))
    first = wait_for_steps(stack, run["id"], 1)
    trainer = find_trainer(stack, first["id"])
    wait_for(
        lambda: _is_suspended_past_a_snapshot(stack, first["id"], trainer),
        "the run is well past its newest snapshot",
    )
    wait_for(
        lambda: _read_newest_snapshot(stack, run["id"])["state"] == "verified",
        "its newest snapshot is verified",
    )
    newest = _read_newest_snapshot(stack, run["id"])
    trainer.kill()
    release_brake(stack)
    done = wait_for_success(stack, run["id"])
    killed, second = done["attempts"]
    assert killed["cause"] == "trainer_killed", "its supervisor reports it before its lease expires"
    assert second["resumed_from"] == {run["id"]: newest["id"]}
    assert done["progress"]["env_step"] == 1_000
    assert done["resume_quality"] == "exact"
    episodes = done["progress"]["episode"]
    assert count_points_per_episode(stack, run["id"], episodes) == [1] * episodes
    assert sum(count_points_per_episode(stack, run["id"], episodes, superseded=True)) > episodes, (
        "the first attempt's points are kept"
    )


def _is_suspended_past_a_snapshot(stack: Stack, attempt_id: str, trainer: psutil.Process) -> bool:
    """Stops the trainer, and lets it go on unless it has trained since its newest snapshot."""
    # Otherwise the next snapshot could be written between the check and the kill.
    suspend(trainer)
    records = list(read_spooled_records(stack.attempt_directory(attempt_id)))
    snapshots = [record["env_step"] for record in records if record["type"] == "snapshot"]
    steps = [record["env_step"][-1] for record in records if record["type"] == "episodes"]
    if snapshots and steps and steps[-1] >= snapshots[-1] + 30:
        return True
    trainer.resume()
    return False


def _read_newest_snapshot(stack: Stack, run_id: str) -> dict[str, object]:
    newest: dict[str, object] = stack.get(f"runs/{run_id}/snapshots", sort="-env_step")["items"][0]
    return newest


def test_a_trainer_runs_on_after_its_worker_is_killed_and_the_next_worker_adopts_it(
    stack: Stack,
) -> None:
    (run,) = stack.submit(make_slow_definition(stack, 3_000))
    attempt = wait_for_steps(stack, run["id"], 1)
    trainer = find_trainer(stack, attempt["id"])
    stack.kill("worker")
    wait_for_steps(stack, run["id"], 50)
    assert trainer.is_running()
    stack.start_worker()
    slots = stack.get_worker()["slots"]
    assert [slot["attempt_id"] for slot in slots if slot["attempt_id"]] == [attempt["id"]]
    release_brake(stack)
    done = wait_for_success(stack, run["id"])
    assert len(done["attempts"]) == 1


def test_a_trainer_ends_with_its_killed_supervisor_and_the_run_is_resumed(stack: Stack) -> None:
    (run,) = stack.submit(make_slow_definition(stack, 1_000, snapshot={"every_env_steps": 50}))
    attempt = wait_for_steps(stack, run["id"], 100)
    trainer = find_trainer(stack, attempt["id"])
    (supervisor,) = stack.list_module_processes("workers.supervisor", attempt["id"])
    supervisor.kill()
    wait_for(
        lambda: not trainer.is_running() or trainer.status() == psutil.STATUS_ZOMBIE,
        "the trainer dies with its supervisor",
    )
    release_brake(stack)
    done = wait_for_success(stack, run["id"])
    assert len(done["attempts"]) == 2


def test_a_worker_with_a_broken_library_drains_and_its_jobs_train_once_it_is_mended(
    stack: Stack,
) -> None:
    """Regression: each job that the worker claimed failed with `no_result`."""
    broken = stack.directory / "site" / "torch.py"
    broken.write_text("raise ImportError('libcudart.so.12: cannot open shared object file')\n")
    try:
        runs = stack.submit(make_cartpole_definition(300), seeds=[0, 1, 2])
        worker = wait_for(_find_draining_worker(stack), "the worker drains")
        for run in runs:
            # An attempt of another slot may still be starting.
            wait_for(partial(_is_queued, stack, run["id"]), "the run waits for another attempt")
    finally:
        broken.unlink()
    assert "libcudart.so.12" in worker["drain_reason"]
    assert "libcudart.so.12" in stack.run_palestra("workers")
    for run in runs:
        causes = {attempt["cause"] for attempt in stack.get(f"runs/{run['id']}")["attempts"]}
        assert causes <= {"not_started"}
    for run in runs[1:]:  # one that trains is enough
        job_id = stack.get(f"runs/{run['id']}")["job_id"]
        stack.post(f"jobs/{job_id}:cancel", {})
    stack.post(f"workers/{worker['id']}:undrain")
    wait_for_success(stack, runs[0]["id"])


def _is_queued(stack: Stack, run_id: str) -> bool:
    return bool(stack.get(f"runs/{run_id}")["state"] == "queued")


def _find_draining_worker(stack: Stack) -> Callable[[], dict[str, Any] | None]:
    def ask() -> dict[str, Any] | None:
        workers = stack.get("workers")["items"]
        return next((worker for worker in workers if worker["state"] == "draining"), None)

    return ask
