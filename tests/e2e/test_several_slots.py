"""An attempt on several slots of a real worker, which declares four GPUs that nothing uses."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.run_history import get_live_attempt, make_cartpole_definition, wait_for_success
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for
from workers.host.slots import Slots

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

GPUS = "\n".join(f"{index}, fake, GPU-{index}, 1000" for index in range(4))


@pytest.fixture
def gpu_stack() -> Iterator[Stack]:
    """A stack whose worker has four slots, each with one GPU that `nvidia-smi` pretends."""
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    program = directory / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<END\n{GPUS}\nEND\n")
    program.chmod(0o700)
    path = f"{program.parent}:{os.environ['PATH']}"
    stack = Stack(directory / "data", slots=4, worker={"PATH": path})
    stack.worker_options = ["--gpus", "all"]
    try:
        with stack:
            yield stack
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def submit(stack: Stack, env_steps: int, gpus: int) -> str:
    resources = {"gpus": gpus, "cpu_threads": 1}
    definition = make_cartpole_definition(env_steps)
    runs = stack.submit(definition, seeds=[gpus], resources=resources)
    return next(str(run["id"]) for run in runs if run["seed"] == gpus)


def wait_until_trains(stack: Stack, run_id: str, past: int) -> dict[str, Any]:
    """Waits until a run is past an env_step; returns its attempt."""
    stack.wait_for_run(run_id, lambda run: run["progress"]["env_step"] > past, "the run trains")
    attempt = get_live_attempt(stack, run_id)
    assert attempt is not None
    return attempt


def list_slots(stack: Stack) -> list[str | None]:
    """Returns the attempt in each slot of the worker that is online."""
    (worker,) = [one for one in stack.get("workers")["items"] if one["state"] == "online"]
    return [slot["attempt_id"] for slot in worker["slots"]]


def find_trainer(stack: Stack, attempt_id: str) -> psutil.Process:
    def find() -> psutil.Process | None:
        return next(iter(stack.list_module_processes("workers.trainer_process", attempt_id)), None)

    return wait_for(find, "the trainer's process")


def test_an_attempt_on_three_slots_outlives_its_worker_and_frees_all_of_them(
    gpu_stack: Stack,
) -> None:
    stack = gpu_stack
    slots = Slots(stack.directory / "worker", 4)
    run_id = submit(stack, 18_000, gpus=3)
    attempt = wait_until_trains(stack, run_id, past=1_000)
    taken = attempt["slots"]
    assert len(set(taken)) == 3
    shown = [attempt["id"] if index in taken else None for index in range(4)]
    assert list_slots(stack) == shown
    trainer = find_trainer(stack, attempt["id"])
    assert trainer.environ()["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, taken))
    assert slots.busy_indices() == tuple(taken)
    waiting = submit(stack, 1_000, gpus=2)
    single = submit(stack, 1_000, gpus=1)
    stack.kill("worker")
    assert trainer.is_running()
    assert slots.busy_indices() == tuple(taken), "the locks outlive the worker"
    stack.start_worker()
    held = list_slots(stack)
    assert [held[index] for index in taken] == [attempt["id"]] * 3
    done = wait_for_success(stack, run_id)
    assert len(done["attempts"]) == 1
    of_two = wait_for_success(stack, waiting)["attempts"][0]
    assert len(of_two["slots"]) == 2
    assert of_two["started_at"] > done["attempts"][0]["ended_at"]
    assert len(wait_for_success(stack, single)["attempts"][0]["slots"]) == 1
    wait_for(lambda: slots.count_free() == 4, "all slots are free")


def test_a_killed_supervisor_frees_all_slots_of_its_attempt(gpu_stack: Stack) -> None:
    stack = gpu_stack
    run_id = submit(stack, 9_000, gpus=4)
    first = wait_until_trains(stack, run_id, past=2_500)
    assert first["slots"] == [0, 1, 2, 3]
    (supervisor,) = stack.list_module_processes("workers.supervisor", first["id"])
    supervisor.kill()
    done = wait_for_success(stack, run_id)
    assert [attempt["slots"] for attempt in done["attempts"]] == [[0, 1, 2, 3]] * 2
