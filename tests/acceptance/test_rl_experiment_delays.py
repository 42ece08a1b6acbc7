"""Delayed starts of the workers of a cluster (row R12)."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.estimator_kit import (
    CLUSTER,
    CallLog,
    FakeCounter,
    make_rl_experiment,
    set_fake_clock,
)
from tests.support.process_stack import find_free_port
from tests.support.waiting import PATIENCE_SECONDS
from workers.estimators.basic_hooks import GlobalStepWaiterHook


def test_R12_delay_workers_by_global_step(tmp_path: Path) -> None:
    for task, step in ((0, 0), (1, 5545), (2, 8788)):
        recorded, counter = CallLog(), FakeCounter()
        made = make_rl_experiment(
            tmp_path / str(task),
            recorded,
            config={**CLUSTER, "task_id": task},
            train_steps=2,
            delay_workers_by_global_step=True,
        )
        set_fake_clock(made, recorded, make_counter=lambda _, counter=counter: counter)
        made.train()
        waiter = next(
            hook
            for hook in recorded.get_calls("train")[0]["hooks"]
            if isinstance(hook, GlobalStepWaiterHook)
        )
        assert waiter.wait_until_step == step == int(8000 * math.log(task + 1))
        assert counter.at - 500 <= step <= counter.at
        assert len(recorded.time.slept) == max(0, -(-step // 500) - 1)
        assert counter.added == 2, "its own updates count for the others"
        assert made.agent.latest_checkpoint() is None, "the master writes the checkpoints"
    for task, seconds in ((1, 5.0), (2, 10.0)):
        recorded = CallLog()
        made = make_rl_experiment(
            tmp_path / f"time{task}", recorded, config={**CLUSTER, "task_id": task}, train_steps=2
        )
        set_fake_clock(made, recorded, make_counter=lambda _: FakeCounter()).train()
        assert recorded.times == [seconds]
    recorded = CallLog()
    big = {**CLUSTER, "cluster": {"worker": ["a:1"] * 100, "master": ["m:1"]}, "task_id": 50}
    set_fake_clock(
        make_rl_experiment(tmp_path / "many", recorded, config=big, train_steps=2),
        recorded,
        make_counter=lambda _: FakeCounter(),
    ).train()
    assert recorded.times == [60.0]
    recorded = CallLog()
    made = make_rl_experiment(
        tmp_path / "explicit",
        recorded,
        config={**CLUSTER, "task_id": 2},
        train_steps=2,
        delay_workers_by_global_step=True,
    )
    set_fake_clock(made, recorded, make_counter=lambda _: FakeCounter()).train(delay_secs=3)
    assert recorded.times == [3.0], "an explicit delay wins"
    assert not any(
        isinstance(hook, GlobalStepWaiterHook) for hook in recorded.get_calls("train")[0]["hooks"]
    )
    alone = make_rl_experiment(
        tmp_path / "alone", config={"task_id": 1}, train_steps=2, delay_workers_by_global_step=True
    )
    with pytest.raises(ValueError, match="delay_workers_by_global_step"):
        alone.train()


_WORKER = """
import sys
from pathlib import Path
from tests.acceptance.estimator_kit import *
from tests.acceptance.estimator_models import *
from workers.entrypoints.experiment_parts import schedules
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.entrypoints.experiment_parts.run_experiment import run_experiment
schedules.DELAY_STEPS = 40
port, kind, task, directory = sys.argv[1:]
cluster = {"ps": [f"127.0.0.1:{port}"], "worker": ["127.0.0.1:1", "127.0.0.1:2"]}
config = dict(cluster=cluster, master=f"127.0.0.1:{port}", task_type=kind, task_id=int(task))
updates = Path(directory).with_name("updates")
class Say(TracingHook):
    def after_run(self, run_context, run_values):
        if run_values.has_learned:
            with updates.open("a") as file:
                file.write("x")
            if not self.learned:
                print("first", updates.stat().st_size, flush=True)
        super().after_run(run_context, run_values)
def make(output):
    agent = make_agent(output, **config)
    options = dict(
        train_steps=60,
        first_update=4,
        update_frequency=2,
        train_hooks=[Say()],
        delay_workers_by_global_step=True,
    )
    return RLExperiment(agent, ScriptedEnv(), **options)
print("begin", flush=True)
run_experiment(make, directory)
print("end", flush=True)
"""


@pytest.mark.processes
@pytest.mark.slow
def test_R12_delay_by_the_global_step_of_real_processes(tmp_path: Path) -> None:
    port = find_free_port()
    started: list[subprocess.Popen[str]] = []

    def start(kind: str, task: int) -> "subprocess.Popen[str]":
        command = [
            sys.executable,
            "-c",
            _WORKER,
            str(port),
            kind,
            str(task),
            str(tmp_path / f"{kind}{task}"),
        ]
        started.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
            )
        )
        return started[-1]

    try:
        server, second = start("ps", 0), start("worker", 1)
        assert second.stdout is not None
        while second.stdout.readline() != "begin\n":
            assert second.poll() is None
        first = start("worker", 0)
        updates = [_count_updates_at_first(process) for process in (first, second)]
        assert (first.returncode, second.returncode) == (0, 0)
        # Worker 1 waits for int(40 ln 2) = 27 updates of worker 0, which starts after it.
        assert updates[0] == 1
        assert updates[1] >= 27
        assert server.poll() is None, "the server blocks until it is stopped"
        server.send_signal(signal.SIGTERM)
        output, _ = server.communicate(timeout=PATIENCE_SECONDS)
        assert (server.returncode, output.splitlines()[-1]) == (0, "end")
    finally:
        for process in started:
            process.kill()
            process.wait()


def _count_updates_at_first(process: "subprocess.Popen[str]") -> int:
    """Returns how many updates all workers had made at the first one of a worker that has ended."""
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    (line,) = [line for line in output.splitlines() if line.startswith("first ")]
    return int(line.removeprefix("first "))
