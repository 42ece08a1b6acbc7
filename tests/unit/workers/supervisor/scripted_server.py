"""A scripted HTTP server for supervisors, which records requests and sends the answers of a test.

The real server has tests of its own.
"""

import contextlib
import hashlib
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


class ScriptedServer:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.renewals: list[dict[str, Any]] = []
        self.releases: list[dict[str, Any]] = []
        self.artifacts: dict[str, dict[str, Any]] = {}
        self.blobs: dict[str, bytes] = {}
        self.tokens: set[str] = set()
        self.credentials: list[tuple[str, str]] = []
        """Path and credential of each request."""
        self.calls: Counter[str] = Counter()
        self.order = "continue"
        self.give_up = False
        self.adoptions: list[dict[str, Any]] = []
        self.further_slots: list[int] = []
        """Slots of the attempt beside the first, as told at its adoption."""
        self.registrations: list[dict[str, Any]] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.claims: list[dict[str, Any]] = []
        self.worker_order = "continue"
        self.drain_reason: str | None = None
        self.secret = "worker-secret"
        self.broker_url = ""
        self.queue: str | None = None
        """The queue of the next registrations; by default one of the pool."""
        self.grant: Callable[[dict[str, Any]], Answer] = lambda _claim: make_problem(
            409, "not_queued"
        )
        self.follow: Callable[[dict[str, Any]], Answer] = lambda _request: (
            200,
            {"training": "over"},
        )
        self.fault: Callable[[str, str], Answer | None] = lambda _method, _path: None
        self.loses_answer: Callable[[str], bool] = lambda _path: False
        """Whether the connection is cut instead of answering a request that was acted upon."""
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self._http: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                server.connections.add(self.connection)

            def do_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with server.lock:
                    server.tokens.add(self.headers.get("Authorization", ""))
                    server.credentials.append(
                        (self.path, self.headers.get("Authorization", "").removeprefix("Bearer "))
                    )
                    status, content = server.answer(self.command, self.path, body)
                if server.loses_answer(self.path):
                    self.close_connection = True
                    return
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header(
                    "Content-Type",
                    "application/octet-stream"
                    if isinstance(content, bytes)
                    else "application/json",
                )
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class TrackingHttpServer(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_: object) -> None:
                pass

        self._http = TrackingHttpServer(("127.0.0.1", self.port), Handler)
        self.port = self._http.server_address[1]
        threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        name = re.sub(r"(att|art|wrk)_[0-9a-z]+", r"\1", path.removeprefix("/api/v1"))
        self.calls[f"{method} {name}"] += 1
        fault = self.fault(method, name)
        if fault is not None:
            return fault
        documents = {
            "/workers": self._register,
            "/workers/wrk:heartbeat": self._answer_heartbeat,
            "/leases": self._claim,
            "/attempts/att/telemetry": self._answer_telemetry,
            "/leases/att:renew": self._renew,
            "/leases/att:release": self._release,
            "/leases/att:adopt": self._adopt,
            "/leases/att:follow": self.follow,
            "/attempts/att/artifacts": self._declare,
        }
        if name in documents:
            return documents[name](json.loads(body))
        if method == "PUT":
            return self._store(path.rsplit("/", 1)[1], body)
        if method == "GET" and name.startswith("/artifacts/"):
            return 200, self.blobs[path.split("/")[4]]
        return make_problem(404, "not_found")

    def _register(self, registration: dict[str, Any]) -> Answer:
        self.registrations.append(registration)
        answer = {
            "worker_id": "wrk_" + "0" * 26,
            "broker_url": self.broker_url,
            "queue": self.queue or f"palestra.pool.{registration['pool'] or 'default'}",
        }
        return 201, {
            **answer,
            "secret": self.secret,
            "heartbeat_seconds": 0.3,
            "work_order_versions": [1, 2],
        }

    def _answer_heartbeat(self, heartbeat: dict[str, Any]) -> Answer:
        self.heartbeats.append(heartbeat)
        return 200, {"order": self.worker_order, "drain_reason": self.drain_reason}

    def _claim(self, claim: dict[str, Any]) -> Answer:
        self.claims.append(claim)
        return self.grant(claim)

    def _renew(self, renewal: dict[str, Any]) -> Answer:
        self.renewals.append(renewal)
        return 200, {
            "order": self.order,
            "acked_seq": len(self.records),
            "lease_seconds": 60.0,
            "give_up": self.give_up,
        }

    def _adopt(self, adoption: dict[str, Any]) -> Answer:
        self.adoptions.append(adoption)
        answer = {"token": "adopted-token", "slot": 0, "renew_seconds": 0.3}
        return 200, answer | {"further_slots": self.further_slots}

    def _answer_telemetry(self, batch: dict[str, Any]) -> Answer:
        if batch["first_seq"] > len(self.records) + 1:
            return make_problem(409, "seq_gap", expected_seq=len(self.records) + 1)
        self.records += batch["records"][len(self.records) + 1 - batch["first_seq"] :]
        return 200, {"acked_seq": len(self.records)}

    def _release(self, release: dict[str, Any]) -> Answer:
        if release["last_seq"] > len(self.records):
            return make_problem(409, "telemetry_missing", expected_seq=len(self.records) + 1)
        self.releases.append(release)
        return 200, {}

    def _declare(self, declaration: dict[str, Any]) -> Answer:
        artifact_id = f"art_{len(self.artifacts):026d}"
        view = {
            **declaration,
            "id": artifact_id,
            "attempt_id": "att",
            "stored": False,
            "created_at": "2026-01-01T00:00:00Z",
        }
        self.artifacts[artifact_id] = view
        return 201, view

    def _store(self, artifact_id: str, body: bytes) -> Answer:
        declared = self.artifacts[artifact_id]
        assert (declared["size"], declared["sha256"]) == (
            len(body),
            hashlib.sha256(body).hexdigest(),
        )
        self.blobs[artifact_id] = body
        declared["stored"] = True
        return 200, declared

    def list_steps(self) -> list[int]:
        return [
            step
            for record in self.records
            if record["type"] == "points"
            for step in record["env_step"]
        ]

    def list_log_lines(self) -> list[str]:
        return [
            line for record in self.records if record["type"] == "log" for line in record["lines"]
        ]


def make_problem(status: int, code: str, **extra: Any) -> Answer:
    return status, {
        "type": "t",
        "title": code,
        "status": status,
        "code": code,
        "detail": f"it is {code}",
        "request_id": "r",
        **extra,
    }
