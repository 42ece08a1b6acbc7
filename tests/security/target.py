"""A real server to attack, with a credential of every kind.

A second client measures how long other requests wait during an attack.
"""

import contextlib
import http.client
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from palestra.contract.names import new_id
from palestra.contract.work_order import WORK_ORDER_VERSION
from tests.support.assigned_jobs import assign_job
from tests.support.process_stack import Stack
from tests.support.server_fixture import make_catalogue, make_definition
from tests.support.waiting import wait_for

LONGEST_DELAY = 0.25
"""Longest time in seconds for which one request may delay another."""


class Target(Stack):
    """A server without broker, worker and daemons, on SQLite.

    Args:
        directory: Data directory.
        descriptors: Limit of open files and sockets of the server; by default this
            process's limit.
        settings: Further environment variables of the server.
    """

    def __init__(
        self,
        directory: Path,
        *,
        descriptors: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        # Each attack sends more requests with one token than the server answers by default.
        own = {"PALESTRA_DAEMONS": "false", "PALESTRA_API_REQUESTS_PER_SECOND": "0"}
        super().__init__(directory, settings={**own, **(settings or {})})
        self._descriptors = descriptors
        self.names: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self.start_server()
        self._make_attempt()
        return self

    def start_server(self) -> None:
        """Starts the server and waits until it is ready."""
        command = [sys.executable, "-m", "app.main"]
        if self._descriptors is not None:
            shell = f'ulimit -n {self._descriptors} && exec "$@"'
            command = ["/bin/sh", "-c", shell, "server", *command]
        self._start("server", command)
        wait_for(self.is_server_ready, f"the server is ready\n{self.log('server')}")

    def request(
        self, method: str, path: str, body: Any = None, who: str = "user"
    ) -> httpx.Response:
        """Sends one small request."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who != "anonymous" else {}
        return self._http.request(method, path, json=body, headers=headers)

    def _make_attempt(self) -> None:
        """Registers a worker and claims a job, which gives an attempt token."""
        registration = {
            "name": "w1",
            "pool": "default",
            "host": "host-1",
            "boot_id": "boot-1",
            "pid": 100,
            "slots": 4,
            "work_order_versions": [WORK_ORDER_VERSION],
            "version": "0.1.0",
            "catalogue": make_catalogue(),
        }
        answer = self._request_successfully("POST", "/api/v1/workers", registration, "worker")
        self.names["worker"], self.tokens["own_worker"] = answer["worker_id"], answer["secret"]
        self._request_successfully("POST", "/api/v1/experiments", {"definition": make_definition()})
        job = self._request_successfully("GET", "/api/v1/jobs", None)["items"][0]
        claim = {
            "job_id": job["id"],
            "expected_attempt": 1,
            "worker_id": self.names["worker"],
            "slot": 0,
        }
        assign_job(self.directory, job["id"], self.names["worker"])
        claimed = self._request_successfully("POST", "/api/v1/leases", claim, "own_worker")
        self.names |= {"job": job["id"], "run": job["run_ids"][0]}
        self.names["attempt"] = claimed["work_order"]["attempt_id"]
        self.names["artifact"] = new_id("art")
        self.tokens["attempt"] = claimed["token"]

    def _request_successfully(self, method: str, path: str, body: Any, who: str = "user") -> Any:
        answer = self.request(method, path, body, who)
        assert answer.is_success, answer.text
        return answer.json()


def get_unscheduled_seconds(pid: int) -> float:
    """Returns the seconds for which a process was ready to run but not scheduled (Linux).

    It is the sum for the main thread and for the other thread with the longest time, which may have
    held the interpreter lock.
    """
    delays = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError, ValueError):
            _, delay, _ = (task / "schedstat").read_text().split()
            delays[int(task.name)] = int(delay) / 1e9
    return delays.pop(pid, 0.0) + max(delays.values(), default=0.0)


@dataclass
class LatencyProbe:
    """Sends small requests to the server repeatedly, from another address.

    Records how long each answer takes. Time for which other programs used the processors is not
    counted, since other tests run at the same time.
    """

    target: Target
    path: str = "/api/v1/session"
    host: str = "127.0.0.9"
    waits: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def watch(self) -> Iterator["LatencyProbe"]:
        """Measures waiting times while the block runs."""
        self.waits, self.failures = [], []
        ended = threading.Event()
        thread = threading.Thread(target=self._ask, args=(ended,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join(60)

    @property
    def longest(self) -> float:
        """The longest waiting time in seconds."""
        return max(self.waits, default=float("inf"))

    def _ask(self, ended: threading.Event) -> None:
        connection = self._connect()
        while not ended.is_set():
            began = self._get_processor_time()
            try:
                connection.request("GET", self.path, headers=self._headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status != httpx.codes.OK:
                    self.failures.append(f"status {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(type(error).__name__)
                connection.close()
                connection = self._connect()
            self.waits.append(self._get_processor_time() - began)
            ended.wait(0.005)
        connection.close()

    def _get_processor_time(self) -> float:
        served = get_unscheduled_seconds(self.target.processes["server"].pid)
        return time.perf_counter() - served - get_unscheduled_seconds(os.getpid())

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.target.tokens['user']}"}

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(
            "127.0.0.1", self.target.port, timeout=30, source_address=(self.host, 0)
        )


def measure_delay(witness: LatencyProbe, attack: Callable[[], None], *, tries: int = 4) -> float:
    """Returns the seconds for which other clients waited while `attack` ran.

    It is the minimum of several tries, since a busy machine delays other clients too.
    """
    least = float("inf")
    for _ in range(tries):
        with witness.watch():
            time.sleep(0.02)
            attack()
        assert not witness.failures, witness.failures[:3]
        least = min(least, witness.longest)
        if least <= LONGEST_DELAY:
            break
    return least


_addresses = itertools.count(1)


def send(target: Target, method: str, path: str, body: bytes, who: str) -> int:
    """Sends a prepared body on a new connection, each time from another address.

    Returns the status code.
    """
    address = f"127.1.{next(_addresses) // 250 % 250}.{next(_addresses) % 250 + 1}"
    connection = http.client.HTTPConnection(
        "127.0.0.1", target.port, 120, source_address=(address, 0)
    )
    headers = {"Content-Type": "application/json"}
    if who != "anonymous":
        headers["Authorization"] = f"Bearer {target.tokens[who]}"
    try:
        connection.request(method, path.format(**target.names), body, headers)
        answer = connection.getresponse()
        answer.read()
    except (ConnectionError, http.client.HTTPException):
        # The server answered before it had read the whole body, and closed the connection.
        return 413
    else:
        return answer.status
    finally:
        connection.close()


def encode_shortest_json(value: Any) -> bytes:
    """Returns the shortest JSON form of a value."""
    return json.dumps(value, separators=(",", ":")).encode()
