"""A worker that is killed, stopped, started again and enrolled; its trainings continue or end."""

import os
import signal
import stat
import sys
from typing import Any

import psutil
import pytest
from scripted_server import ScriptedServer, make_problem
from worker_bench import WORKER_PROGRAM, WorkerBench, grant_once, make_long_training

from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.host.slots import Slots
from workers.ipc.attempt_directory import read_json
from workers.ipc.process_tree import find_processes

pytestmark = pytest.mark.processes


PAUSED_FORKS = """
import os, pathlib, sys
from tests.support.waiting import wait_for
from tests.unit.workers.supervisor.worker_without_catalogue import main

flag, paused = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])

def pause():
    if flag.exists():
        with paused.open("a") as file:
            file.write(f"{os.getpid()}\\n")
    wait_for(lambda: not flag.exists(), "the test lets the child go on")

# Before the worker's own hook, which main registers.
os.register_at_fork(after_in_child=pause)
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.parametrize("goes_on", [True, False])
def test_children_forked_by_a_killed_worker_do_not_block_the_next_worker(
    bench: WorkerBench, server: ScriptedServer, goes_on: bool
):
    """The worker is killed between a fork and the child's request to be killed with its parent.

    A child that continues ends by itself; the next worker ends a child that is still paused.
    """
    bench.start_broker()
    flag, paused = bench.directory / "pause", bench.directory / "paused"
    command = [sys.executable, "-c", PAUSED_FORKS, str(flag), str(paused)]
    worker = bench._start("worker", [*command, *bench.worker_options, "--slots", "2"])
    bench.dispatch()
    wait_for(lambda: server.claims, f"its children work\n{bench.log('worker')}")
    flag.touch()
    for child in psutil.Process(worker.pid).children():
        child.kill()
    wait_for(
        lambda: paused.exists() and paused.read_text().count("\n") == 2,
        "children are forked anew",
    )
    worker.kill()
    worker.wait()
    # A child that has ended already is gone.
    pids = [int(pid) for pid in paused.read_text().split()]
    children = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    if goes_on:
        flag.unlink()
        wait_for(lambda: all(map(_is_gone, children)), "the children end by themselves")
    bench.start_worker()
    assert bench.processes[-1].poll() is None, bench.log("worker")
    assert ("worker.ended_leftover" in bench.log("worker")) is not goes_on
    wait_for(lambda: all(map(_is_gone, children)), "nothing is left of the first worker")


def _is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
def test_the_next_worker_adopts_and_drains_the_training_of_a_killed_worker(
    bench: WorkerBench, server: ScriptedServer
):
    bench.start_broker()
    grant_once(server, definition=make_long_training(), limits={"grace_seconds": 30})
    worker = bench.start_worker()
    bench.dispatch()
    attempt = bench.wait_for_attempt()
    wait_for(lambda: read_json(attempt.progress).get("env_step", 0) > 200, "it trains")
    assert Slots(bench.state, 2).count_free() == 1
    bench.dispatch(server.claims[0]["job_id"])
    wait_for(
        lambda: bench.get_counters() == {"started": 1, "not_claimed": 1},
        "the second ring finds nothing",
    )
    supervisor, trainer = attempt.supervisor(), attempt.trainer()
    assert supervisor is not None
    assert trainer is not None
    assert os.getsid(supervisor.pid) not in {os.getsid(worker.pid), worker.pid}
    worker.kill()
    worker.wait()
    before = read_json(attempt.progress)["env_step"]
    wait_for(
        lambda: read_json(attempt.progress)["env_step"] > before + 200,
        "training goes on without a worker",
    )
    assert supervisor.is_alive()
    assert trainer.is_alive()
    second = bench.start_worker()
    heartbeat = server.heartbeats[-1]
    assert heartbeat["live_attempts"] == [attempt.attempt_id]
    assert (heartbeat["dead_attempts"], heartbeat["busy_slots"]) == ([], [0])
    assert Slots(bench.state, 2).count_free() == 1
    second.send_signal(signal.SIGTERM)
    assert second.wait(PATIENCE_SECONDS) == 0, bench.log("worker")
    assert not supervisor.is_alive()
    assert not find_processes(attempt.mark, trainer.pid)
    assert Slots(bench.state, 2).count_free() == 2
    (release,) = server.releases
    assert release["report"]["outcome"] == "drained"
    assert any(record["type"] == "snapshot" for record in server.records)
    assert "worker-token" not in bench.log("worker")
    assert "worker-secret" not in bench.log("worker")
    assert "attempt-token" not in bench.log("worker") + attempt.supervisor_log.read_text()


def list_reports(server: ScriptedServer) -> list[int]:
    """Returns the indices of the heartbeats that report dead attempts."""
    return [index for index, beat in enumerate(server.heartbeats) if beat["dead_attempts"]]


def test_a_killed_supervisor_is_reported_once_and_trainings_outlive_a_stopped_worker(
    bench: WorkerBench, server: ScriptedServer
):
    bench.start_broker()
    grant_once(server, definition=make_long_training())
    worker = bench.start_worker("--on-stop", "keep")
    bench.dispatch()
    attempt = bench.wait_for_attempt()
    wait_for(lambda: (found := attempt.trainer()) and found.is_alive(), "a trainer")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0
    supervisor = attempt.supervisor()
    assert supervisor is not None
    assert supervisor.is_alive()
    bench.start_worker("--on-stop", "keep")
    supervisor.send(signal.SIGKILL)
    wait_for(lambda: not supervisor.is_alive(), "the supervisor ends")
    before = len(server.heartbeats)
    wait_for(lambda: list_reports(server), "the death is told")
    assert list_reports(server)[0] <= before + 1, "a heartbeat that was under way may come first"
    told = len(server.heartbeats)
    wait_for(lambda: len(server.heartbeats) >= told + 3, "further heartbeats")
    (report,) = list_reports(server)
    assert server.heartbeats[report]["dead_attempts"] == [attempt.attempt_id]
    assert not find_processes(attempt.mark, None)


def test_a_worker_enrols_once_and_then_uses_its_own_secret(
    bench: WorkerBench, server: ScriptedServer
):
    """The enrolment token permits nothing but registration.

    After a lost answer the same enrolment number is sent again.
    """
    bench.start_broker()
    server.loses_answer = lambda path: path.endswith("/workers") and len(server.registrations) == 1
    worker = bench.start_worker()
    bench.dispatch()
    wait_for(lambda: server.claims, f"a claim\n{bench.log('worker')}")
    first, second = server.registrations
    assert first["enrolment"] == second["enrolment"] is not None
    assert {secret for path, secret in server.credentials if path.endswith("/workers")} == {
        "worker-token"
    }
    assert {secret for path, secret in server.credentials if not path.endswith("/workers")} == {
        "worker-secret"
    }
    kept = bench.state / "worker.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0
    bench.start_worker()
    assert len(server.registrations) == 3
    assert server.registrations[-1].get("enrolment") is None
    assert [secret for path, secret in server.credentials if path.endswith("/workers")][
        -1
    ] == "worker-secret"


def test_a_worker_with_a_revoked_secret_enrols_again(bench: WorkerBench, server: ScriptedServer):
    """An admin revoked the secret; the worker sends another number, and its processes use the new
    secret.
    """
    bench.start_broker()
    worker = bench.start_worker()
    first = server.registrations[0]["enrolment"]
    good = "another-secret"

    def refuse_former_secret(method: str, path: str) -> tuple[int, Any] | None:
        _, credential = server.credentials[-1]
        return (
            make_problem(401, "unauthenticated")
            if credential not in {good, "worker-token"}
            else None
        )

    server.secret = good
    server.queue = "palestra.pool.default.wrk_another"
    server.fault = refuse_former_secret
    wait_for(lambda: len(server.registrations) == 2, f"it enrols again\n{bench.log('worker')}")
    assert server.registrations[1]["enrolment"] not in {first, None}
    bench.dispatch()
    wait_for(lambda: server.claims, lambda: f"a claim\n{bench.log('worker')}")
    assert ("/api/v1/leases", good) in server.credentials
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0


def test_a_worker_whose_name_is_in_use_exits_with_75(bench: WorkerBench, server: ScriptedServer):
    """Service managers and `palestra up` restart a process that exits with 75."""
    server.fault = lambda _method, path: (
        make_problem(409, "worker_name_taken") if path == "/workers" else None
    )
    worker = bench._start("worker", [sys.executable, "-m", WORKER_PROGRAM, *bench.worker_options])
    assert worker.wait(PATIENCE_SECONDS) == 75
    assert "worker_name_taken" in bench.log("worker")
