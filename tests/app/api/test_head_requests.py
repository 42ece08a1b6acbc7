"""HEAD is answered as GET without the body, on every route but streams and exports."""

import asyncio
import contextlib
import http.client
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.responses import StreamingResponse
from fastapi.routing import iter_route_contexts

from app.api.head_requests import HeadRequests
from app.api.request_rate import RequestRate
from app.main import create_app
from app.settings import Settings
from tests.app.api.serving import HOST, AppServer
from tests.app.api.test_access import SUBSTITUTES
from tests.support.listening import listening
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMED: Final = {
    "/api/v1/events",
    "/api/v1/runs/{run_id}/snapshots/{snapshot_id}/archive",
    "/api/v1/records:export",
    "/api/v1/usage:export",
    "/api/v1/audit:export",
}
METHODS: Final = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
QUERIES: Final = ("", "limit=1", "limit=0", "limit=x&cursor=%21", "zz=1")
LARGE: Final = 4 * 2**20

Headers = list[tuple[bytes, bytes]]


async def ask(
    app: Any, method: str, path: str, query: str = "", **headers: str
) -> tuple[int, Headers, bytes]:
    """Returns status, headers and body of an answer, as the application passes them to a server.

    httpx and uvicorn would remove the body of an answer to HEAD.
    """
    sent = {"host": HOST, "x-request-id": "same", **headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), sent[name].encode()) for name in sent],
        "server": (HOST, 80),
        "client": (HOST, 1),
    }
    received: asyncio.Queue[Any] = asyncio.Queue()
    received.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, received.get, send)
    start, *parts = messages
    assert not parts[-1].get("more_body", False)
    body = b"".join(part.get("body", b"") for part in parts)
    return start["status"], sorted(start["headers"]), body


CONTEXTS: Final = list(iter_route_contexts(create_app(Settings()).routes))
READ: Final = [str(context.path) for context in CONTEXTS if "GET" in (context.methods or ())]


def _list_methods(path: str) -> set[str]:
    """Returns the methods of all routes that a path has, with HEAD where GET is not streamed."""
    matching = [context for context in CONTEXTS if context.path_regex.match(path)]
    has_head = any(
        "GET" in (context.methods or ()) and context.path not in STREAMED for context in matching
    )
    own = {method for context in matching for method in context.methods or ()}
    return own | {"HEAD"} if has_head else own


def _fill(path: str, names: dict[str, str]) -> str:
    for name, value in {**SUBSTITUTES, **names}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _authorise(shared: AppServer, who: str) -> dict[str, str]:
    return {} if who == "anonymous" else {"authorization": f"Bearer {shared.tokens[who]}"}


@pytest.mark.parametrize("who", ["user", "viewer", "enrolment", "anonymous"])
async def test_head_is_answered_as_get_without_the_body(shared: AppServer, who: str) -> None:
    paths = [path for path in READ if path not in STREAMED]
    assert len(paths) > 50
    headers = {**_authorise(shared, who), "accept_encoding": "gzip"}
    rows = await shared.count_rows()
    same = 0
    for path, names in itertools.product(paths, ({}, shared.path_names)):
        url = _fill(path, names)
        for query in QUERIES if who == "user" else ("",):
            before = await ask(shared.app, "GET", url, query, **headers)
            found = await ask(shared.app, "HEAD", url, query, **headers)
            after = await ask(shared.app, "GET", url, query, **headers)
            assert found[2] == b""
            assert _without_length(found) == _without_length(before), (url, query)
            # Some answers hold times, which are other ones in the next answer.
            if before == after:
                same += 1
                assert found[1] == before[1], (url, query)
                assert dict(found[1])[b"content-length"] == str(len(before[2])).encode()
    assert same > len(paths)
    assert await shared.count_rows() == rows


def _without_length(answer: tuple[int, Headers, bytes]) -> tuple[int, Headers]:
    return answer[0], [pair for pair in answer[1] if pair[0] != b"content-length"]


async def test_head_of_a_stream_or_export_is_refused(shared: AppServer) -> None:
    assert set(READ) > STREAMED
    for path in STREAMED:
        url = _fill(path, shared.path_names)
        status, headers, _ = await ask(shared.app, "HEAD", url, **_authorise(shared, "user"))
        assert (status, dict(headers)[b"allow"]) == (405, b"GET"), path


@pytest.mark.parametrize("name", ["events", "archive", "x:export"])
async def test_objects_that_are_named_like_a_stream_have_head(shared: AppServer, name: str) -> None:
    for path in ("/api/v1/projects", "/api/v1/pools", "/api/v1/runs", "/api/v1/artifacts"):
        headers = _authorise(shared, "user")
        status, expected, _ = await ask(shared.app, "GET", f"{path}/{name}", **headers)
        assert await ask(shared.app, "HEAD", f"{path}/{name}", **headers) == (status, expected, b"")
        assert status == 404


async def test_a_refused_method_is_answered_with_all_methods_of_the_path(
    shared: AppServer,
) -> None:
    for context in CONTEXTS:
        url = _fill(str(context.path), shared.path_names)
        allowed = _list_methods(url)
        for method in METHODS - allowed:
            status, headers, _ = await ask(shared.app, method, url, **_authorise(shared, "user"))
            assert status == 405, (method, url)
            assert dict(headers)[b"allow"].decode().split(", ") == sorted(allowed), (method, url)


async def test_head_of_a_path_without_get_is_refused_without_a_body(shared: AppServer) -> None:
    caller = _authorise(shared, "user")
    status, headers, body = await ask(shared.app, "HEAD", "/api/v1/series:query", **caller)
    assert (status, dict(headers)[b"allow"], body) == (405, b"POST", b"")


async def test_head_of_an_unknown_path_is_answered_as_get(shared: AppServer) -> None:
    for path in ("/api/v1/unknown", "/api/v2/runs", "/unknown", "/", "/assets/unknown.js"):
        for accept in ("*/*", "text/html"):
            status, headers, _ = await ask(shared.app, "GET", path, accept=accept)
            assert await ask(shared.app, "HEAD", path, accept=accept) == (status, headers, b"")


async def test_head_counts_as_a_request_of_its_token(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = RequestRate(Settings(api_requests_per_second=0.001, api_burst=1))
    monkeypatch.setattr(shared.app.state.request_rate, "check", rate.check)
    headers = _authorise(shared, "user")
    statuses = [
        (await ask(shared.app, method, "/api/v1/runs", **headers))[0]
        for method in ("HEAD", "HEAD", "GET")
    ]
    assert statuses == [200, 429, 429]


async def test_head_of_a_file_with_its_entity_tag_is_not_modified(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "index.html").write_text("<title>Palestra</title>")
    app = create_app(Settings(dashboard_dir=tmp_path / "dist", data_dir=tmp_path))
    status, headers, body = await ask(app, "HEAD", "/")
    assert (status, body) == (200, b"")
    tag = dict(headers)[b"etag"].decode()
    status, expected, _ = await ask(app, "GET", "/", if_none_match=tag)
    assert await ask(app, "HEAD", "/", if_none_match=tag) == (304, expected, b"")
    assert status == 304


async def test_head_in_a_login_needs_no_csrf_token(shared: AppServer) -> None:
    client, _ = await shared.browser()
    async with contextlib.aclosing(client):
        answer = await client.head("/api/v1/runs")
    assert answer.status_code == 200


async def test_head_ends_a_handler_at_the_first_part_of_its_answer() -> None:
    sent = []
    router = APIRouter()

    async def yield_without_end() -> AsyncIterator[bytes]:
        for number in itertools.count():
            sent.append(number)
            yield b"x"

    @router.get("/a/b/c/d")
    async def answer() -> StreamingResponse:
        return StreamingResponse(yield_without_end(), headers={"Content-Length": "99"})

    app = FastAPI(openapi_url=None)
    app.include_router(router)
    app.add_middleware(HeadRequests, router=app.router)
    assert await ask(app, "HEAD", "/a/b/c/d") == (200, [(b"content-length", b"99")], b"")
    assert sent == [0]


@pytest.mark.parametrize("range_", [None, "bytes=1-9"])
async def test_head_of_a_large_artifact_closes_it_and_leaves_the_connection_usable(
    shared: AppServer, range_: str | None
) -> None:
    name = f"large-{range_}"
    path = await shared.store_artifact(f"{name}.bin", name.ljust(LARGE, "x"))
    headers = {"Authorization": f"Bearer {shared.tokens['user']}"}
    headers |= {} if range_ is None else {"Range": range_}

    def request(url: str) -> tuple[list[Any], list[int]]:
        connection = http.client.HTTPConnection(*url.split("/")[2].split(":"), PATIENCE_SECONDS)  # type: ignore[arg-type]
        answers, ports = [], []
        for method, asked in (("HEAD", path), ("GET", path), ("HEAD", path), ("GET", "/healthz")):
            connection.request(method, asked, headers=headers)
            answer = connection.getresponse()
            ports.append(connection.sock.getsockname()[1])
            answers.append((answer.status, answer.headers["content-length"], len(answer.read())))
        connection.close()
        return answers, ports

    async with listening(shared.app) as url:
        answers, ports = await asyncio.to_thread(request, url)
        assert _list_open_files(shared) == []
    status, length = (200, LARGE) if range_ is None else (206, 9)
    assert answers[:3] == [
        (status, str(length), 0),
        (status, str(length), length),
        (status, str(length), 0),
    ]
    assert answers[3][0] == 200
    assert len(set(ports)) == 1, "all on one connection"


def _list_open_files(shared: AppServer) -> list[str]:
    """Returns the stored files that this process has open."""
    directory = str(shared.app.state.settings.artifact_dir)
    paths = [file.path for file in psutil.Process().open_files()]
    return [path for path in paths if path.startswith(directory)]
