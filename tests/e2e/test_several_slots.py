"""An attempt on several slots of a real worker, which declares four GPUs that nothing uses."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import make_own_project
from tests.e2e.run_history import (
    find_trainer,
    make_cartpole_definition,
    make_slow_definition,
    release_brake,
    wait_for_steps,
    wait_for_success,
)
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for
from workers.host.slots import Slots

pytestmark = pytest.mark.processes

POOL = WORKER = "gpus"
GPUS = "\n".join(f"{index}, fake, GPU-{index}, 1000" for index in range(4))
StartWorker = Callable[[], None]


@pytest.fixture(scope="module")
def gpu_stack(shared_stack: Stack) -> Iterator[tuple[Stack, StartWorker]]:
    """A stack with a worker of four slots, each with one GPU that `nvidia-smi` pretends.

    Also yields the function that starts the worker.
    """
    program = shared_stack.directory / "bin" / "nvidia-smi"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\ncat <<END\n{GPUS}\nEND\n")
    program.chmod(0o700)
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    options = ("--slots", "4", "--gpus", "all")
    with make_own_project(shared_stack) as stack:
        stack.add_pool(POOL)

        def start_worker() -> None:
            stack.start_worker(WORKER, None, POOL, *options, environment=environment)

        start_worker()
        yield stack, start_worker


def submit(stack: Stack, definition: dict[str, Any], gpus: int) -> str:
    resources = {"gpus": gpus, "cpu_threads": 1}
    runs = stack.submit(definition, seeds=[gpus], resources=resources, pool=POOL)
    return next(str(run["id"]) for run in runs if run["seed"] == gpus)


def list_slots(stack: Stack) -> list[str | None]:
    """Returns the attempt in each slot of the worker."""
    return [slot["attempt_id"] for slot in stack.get_worker(WORKER)["slots"]]


def test_an_attempt_on_three_slots_outlives_its_worker_and_frees_all_of_them(
    gpu_stack: tuple[Stack, StartWorker],
) -> None:
    stack, start_worker = gpu_stack
    slots = Slots(stack.directory / WORKER, 4)
    run_id = submit(stack, make_slow_definition(stack, 3_000), gpus=3)
    attempt = wait_for_steps(stack, run_id, 1)
    taken = attempt["slots"]
    assert len(set(taken)) == 3
    shown = [attempt["id"] if index in taken else None for index in range(4)]
    assert list_slots(stack) == shown
    trainer = find_trainer(stack, attempt["id"])
    assert trainer.environ()["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, taken))
    assert slots.busy_indices() == tuple(taken)
    short = make_cartpole_definition(300)
    waiting, single = submit(stack, short, gpus=2), submit(stack, short, gpus=1)
    stack.kill(WORKER)
    assert trainer.is_running()
    assert slots.busy_indices() == tuple(taken), "the locks outlive the worker"
    start_worker()
    held = list_slots(stack)
    assert [held[index] for index in taken] == [attempt["id"]] * 3
    release_brake(stack)
    done = wait_for_success(stack, run_id)
    assert len(done["attempts"]) == 1
    of_two = wait_for_success(stack, waiting)["attempts"][0]
    assert len(of_two["slots"]) == 2
    assert of_two["started_at"] > done["attempts"][0]["ended_at"]
    assert len(wait_for_success(stack, single)["attempts"][0]["slots"]) == 1
    wait_for(lambda: slots.count_free() == 4, "all slots are free")


def test_a_killed_supervisor_frees_all_slots_of_its_attempt(
    gpu_stack: tuple[Stack, StartWorker],
) -> None:
    stack, _ = gpu_stack
    definition = make_slow_definition(stack, 1_000, snapshot={"every_env_steps": 50})
    run_id = submit(stack, definition, gpus=4)
    first = wait_for_steps(stack, run_id, 100)
    assert first["slots"] == [0, 1, 2, 3]
    (supervisor,) = stack.list_module_processes("workers.supervisor", first["id"])
    supervisor.kill()
    release_brake(stack)
    done = wait_for_success(stack, run_id)
    assert [attempt["slots"] for attempt in done["attempts"]] == [[0, 1, 2, 3]] * 2
