"""Attempts a second through dispatcher, Celery and claim, beside a bare Celery task and `rq`.

Attempts of Palestra hold a slot for no time and have no trainer: what remains is the decision, the
assignment, the message, the claim and the release, each committed. Two servers share a PostgreSQL,
each with one worker. The bare tasks have the same
payload, go through the same Valkey, and do nothing. Then a few trainings go through real processes.

    python -m benchmarks.queue_throughput [--jobs 600] [--trainings 10]

`rq` is no dependency of Palestra: `make bench` installs it into an environment of its own; without
that its row is left out.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks._queue import bare_tasks
from benchmarks._report import describe_machine
from benchmarks.audit_log import database_url
from tests.e2e.run_history import make_cartpole_definition
from tests.support.process_stack import REPOSITORY
from tests.support.several_servers import SeveralServers
from tests.support.waiting import wait_for

RQ: Final = REPOSITORY / ".setup" / "rq" / "bin" / "python"
"""Interpreter of the environment that `make bench` makes."""
LEAST_RATE: Final = 50.0
WORKERS: Final = 2
SLOTS: Final = 8
_TRIM: Final = 0.05
"""Part of the attempts at either end that the rate leaves out, while the slots are not all used."""


def compute_rate(times: Sequence[float]) -> float:
    """Returns the ends a second, without the first and the last few."""
    ordered = sorted(times)
    cut = int(_TRIM * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    return (len(kept) - 1) / (kept[-1] - kept[0])


def measure_attempts(
    stack: SeveralServers, name: str, jobs: int, env_steps: int
) -> tuple[float, dict[str, float]]:
    """Queues jobs while the pool is paused.

    Returns:
        How many attempts end a second, and the milliseconds of processor time that each costs, by
        kind of process.
    """
    stack.post("pools/default:pause", {"reason": "all jobs are queued first"})
    runs = stack.submit(
        make_cartpole_definition(env_steps, name=name),
        seeds=list(range(jobs)),
        resources={"pack": "off"},
    )
    assert len(runs) == min(jobs, 500)
    before = read_processor_seconds(stack)
    stack.post("pools/default:resume", {})
    statement = (
        "SELECT extract(epoch FROM attempts.ended_at) FROM attempts "
        "JOIN jobs ON jobs.id = attempts.job_id "
        "JOIN experiments ON experiments.id = jobs.experiment_id WHERE experiments.name = %s"
    )

    def read_ends() -> list[float] | None:
        time.sleep(1)
        ends = [float(row[0]) for row in stack.query(statement, name) if row[0] is not None]
        return ends if len(ends) >= jobs else None

    ends = wait_for(read_ends, f"{jobs} attempts end", patience_seconds=600)
    after = read_processor_seconds(stack)
    costs = {kind: 1e3 * (after[kind] - before[kind]) / jobs for kind in before}
    return compute_rate(ends), costs


def read_processor_seconds(stack: SeveralServers) -> dict[str, float]:
    """Returns the processor time used so far by each kind of process, with its children."""
    found = {"servers": 0.0, "workers": 0.0, "broker": 0.0, "database": 0.0}
    kinds = {"server": "servers", "broker": "broker"}
    for name, process in stack.processes.items():
        if process.poll() is None:
            kind = kinds.get(name.partition("-")[0], "workers")
            found[kind] += _sum_processor_seconds(psutil.Process(process.pid))
    place = re.search(r"host=([^&]+)", stack.database_url)
    assert place is not None
    postmaster = int((Path(place[1]) / "data" / "postmaster.pid").read_text().split()[0])
    found["database"] = _sum_processor_seconds(psutil.Process(postmaster))
    return found


def _sum_processor_seconds(root: psutil.Process) -> float:
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            # Of children that have ended, each process keeps the sum.
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def measure_bare(
    stack: SeveralServers,
    jobs: int,
    queue: Callable[[dict[str, str], int], None],
    command: Sequence[str],
) -> float:
    """Queues bare tasks, starts two workers, and returns how many tasks end a second."""
    ends = stack.directory / f"ends-{time.monotonic()}"
    ends.touch()
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        bare_tasks.ENDS_VARIABLE: str(ends),
        bare_tasks.BROKER_VARIABLE: f"redis://127.0.0.1:{stack.broker_port}/1",
    }
    queue(environment, jobs)
    with (stack.directory / "bare.log").open("ab") as log:
        workers = [
            subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=log, stderr=log)
            for _ in range(WORKERS)
        ]
    try:
        wait_for(
            lambda: ends.read_bytes().count(b"\n") >= jobs,
            "the bare tasks end",
            patience_seconds=300,
        )
    finally:
        for worker in workers:
            children = psutil.Process(worker.pid).children(recursive=True)
            worker.kill()
            worker.wait()
            for child in children:
                child.kill()
    return compute_rate([float(line) for line in ends.read_text().split()])


def _payload(number: int) -> dict[str, Any]:
    return {"job_id": f"job_{number:026}", "expected_attempt": 1}


def queue_celery(environment: dict[str, str], jobs: int) -> None:
    """Sends the messages of Celery tasks."""
    os.environ[bare_tasks.BROKER_VARIABLE] = environment[bare_tasks.BROKER_VARIABLE]
    app: Any = bare_tasks.make_app()
    for number in range(jobs):
        app.send_task(bare_tasks.TASK, kwargs=_payload(number), queue=bare_tasks.QUEUE)
    app.close()


def queue_rq(environment: dict[str, str], jobs: int) -> None:
    """Sends the messages of `rq`, in its own environment."""
    program = (
        "import json, os, sys; from redis import Redis; from rq import Queue\n"
        f"connection = Redis.from_url(os.environ[{bare_tasks.BROKER_VARIABLE!r}])\n"
        "queue = Queue('bare', connection=connection)\n"
        "for one in json.load(sys.stdin):\n"
        "    queue.enqueue('benchmarks._queue.bare_tasks.end', kwargs=one, result_ttl=0)\n"
    )
    payloads = json.dumps([_payload(number) for number in range(jobs)])
    subprocess.run(
        [str(RQ), "-c", program],
        input=payloads,
        text=True,
        check=True,
        env=environment,
        cwd=REPOSITORY,
    )


def run(jobs: int, trainings: int) -> bool:
    """Prints the rates; returns whether Palestra's is within its bound."""
    print(f"{describe_machine()}, load {os.getloadavg()[0]:.1f} before the start")
    with (
        database_url("postgresql") as url,
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        SeveralServers(
            Path(directory), url, servers=WORKERS, slots=SLOTS, hold_seconds=(0.0, 0.0)
        ) as stack,
    ):
        stack.start_worker("second", stack.address("server-2"))
        stack.stop("worker")
        stack.start_worker("first", stack.address("server-1"))
        measure_attempts(stack, "no-op warm-up", 100, 1_000)
        rate, costs = measure_attempts(stack, "no-op", jobs, 1_001)
        verdict = "ok" if rate >= LEAST_RATE else f"UNDER {LEAST_RATE:g}"
        print(f"{'dispatch + Celery + claim, no-op attempts':<44}{rate:10.1f} a second  {verdict}")
        parts = ", ".join(f"{kind} {cost:.1f}" for kind, cost in costs.items())
        print(f"{'processor time of an attempt':<44}{sum(costs.values()):10.1f} ms: {parts}")
        print(f"{'load of the machine':<44}{os.getloadavg()[0]:10.1f}")
        command = [sys.executable, "-m", "benchmarks._queue.bare_tasks"]
        celery = measure_bare(stack, 4 * jobs, queue_celery, command)
        print(f"{'bare Celery task':<44}{celery:10.1f} a second")
        if RQ.exists():
            broker = f"redis://127.0.0.1:{stack.broker_port}/1"
            rq = [str(RQ), "-m", "rq.cli", "worker", "--url", broker, "bare"]
            found = measure_bare(stack, jobs, queue_rq, rq)
            print(f"{'rq':<44}{found:10.1f} a second")
        else:
            print("rq: not installed; `make bench` does")
        if trainings:
            found, _ = measure_attempts(stack, "training", trainings, 600)
            print(f"{'trainings of 600 env_steps, real processes':<44}{found:10.2f} a second")
    return rate >= LEAST_RATE


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--trainings", type=int, default=20)
    chosen = parser.parse_args()
    raise SystemExit(not run(chosen.jobs, chosen.trainings))
