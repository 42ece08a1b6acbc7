"""A real server to attack, with a credential of every kind."""

import http.client
import itertools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import httpx

from palestra.contract.names import new_id
from palestra.contract.work_order import WORK_ORDER_VERSIONS
from tests.support.assigned_jobs import assign_job
from tests.support.process_stack import Stack
from tests.support.server_fixture import make_catalogue, make_definition
from tests.support.waiting import PATIENCE_SECONDS, wait_for

DESCRIPTORS: Final = 1_024
"""Files and sockets that the server may open."""
SETTINGS: Final = {
    "PALESTRA_DAEMONS": "false",
    # Each attack sends more requests with one token than the server answers by default.
    "PALESTRA_API_REQUESTS_PER_SECOND": "0",
    # Connections that send nothing stay open while a test holds them.
    "PALESTRA_REQUEST_HEAD_SECONDS": "60",
}


class Target(Stack):
    """A server without broker, worker and daemons, on SQLite, which may open few files and sockets.

    Args:
        directory: Data directory.
        template: SQLite file with the schema; without it an empty file is migrated.
        settings: Further environment variables of the server.
    """

    def __init__(
        self,
        directory: Path,
        template: Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, settings={**SETTINGS, **(settings or {})}, template=template)
        self.names: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self.start_server()
        self._make_attempt()
        return self

    def start_server(self) -> None:
        """Starts the server and waits until it is ready."""
        shell = f'ulimit -n {DESCRIPTORS} && exec "$@"'
        command = ["/bin/sh", "-c", shell, "server", sys.executable, "-m", "app.main"]
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
            "work_order_versions": list(WORK_ORDER_VERSIONS),
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


_addresses = itertools.count(1)


def send(target: Target, method: str, path: str, body: bytes, who: str) -> int:
    """Sends a prepared body on a new connection, each time from another address.

    Returns the status code.
    """
    address = f"127.1.{next(_addresses) // 250 % 250}.{next(_addresses) % 250 + 1}"
    connection = http.client.HTTPConnection(
        "127.0.0.1", target.port, PATIENCE_SECONDS, source_address=(address, 0)
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
