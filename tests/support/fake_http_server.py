"""A small HTTP server with scripted answers, which records the requests that it receives."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class RecordedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """A scripted answer: `raw` is sent unchanged, `drop` closes the connection
    without an answer.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drop: bool = False


Rule = Callable[[RecordedRequest], Answer]


class FakeHttpServer:
    """An HTTP server with scripted answers by method and path.

    The answers of a route are used in order; the last one is repeated.
    """

    def __init__(self) -> None:
        self.asked: list[RecordedRequest] = []
        self.answers: dict[tuple[str, str], list[Answer | Rule]] = {}
        self.url = ""

    def set_answers(self, method: str, path: str, *answers: Answer | Rule) -> None:
        """Sets the answers of a route below `/api/v1`."""
        self.answers[(method, f"/api/v1{path}")] = list(answers)

    def reply(self, asked: RecordedRequest) -> Answer:
        """Records a request and returns the next answer of its route."""
        self.asked.append(asked)
        rules = self.answers.get((asked.method, asked.path))
        if not rules:
            return Answer(
                404, make_problem(404, "not_found", "There is no such resource in this project.")
            )
        rule = rules.pop(0) if len(rules) > 1 else rules[0]
        return rule if isinstance(rule, Answer) else rule(asked)


def make_problem(
    status: int, code: str, detail: str, errors: tuple[dict[str, str], ...] = ()
) -> dict[str, Any]:
    """Returns an answer with problem details."""
    return {
        "type": f"urn:palestra:problem:{code}",
        "title": "x",
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": "req_1",
        "errors": list(errors),
    }


@contextmanager
def run_fake_server() -> Iterator[FakeHttpServer]:
    """Runs a fake server on a free port."""
    peer = FakeHttpServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = RecordedRequest(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                headers,
                json.loads(raw) if raw else None,
            )
            answer = peer.reply(asked)
            if answer.drop:
                self.close_connection = True
                return
            content = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                **answer.headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        # The base class looks for methods of these names.
        do_GET = do_POST = do_DELETE = _serve  # noqa: N815

        # The base class gives the signature.
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Suppresses the request log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        peer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield peer
        finally:
            server.shutdown()
            thread.join()
