"""A read whose client has left ends in the database; a write goes on."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.api import health
from app.client_presence import READER, ClientPresence
from app.services.projects import projects
from app.services.runs import runs
from tests.app.api.serving import AppServer
from tests.support.listening import listening
from tests.support.statements import ENDLESS
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _open(url: str, request: str, token: str) -> asyncio.StreamWriter:
    _reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{request.replace('|', head)}".encode())
    return writer


async def test_the_read_of_a_client_that_left_ends(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []

    async def read_without_end(*_: Any) -> None:
        # Not in the session of the route, whose deadline would end the statement as well.
        async with shared.app.state.database.read(3_600) as session:
            noted.append("begun")
            try:
                await session.execute(text(ENDLESS))
            except OperationalError:
                noted.append("ended")
                raise

    monkeypatch.setattr(runs, "list_runs", read_without_end)
    async with listening(shared.app) as url:
        request = "GET /api/v1/runs HTTP/1.1\r\n|\r\n"
        for _ in range(12):  # More than there are connections to the database.
            noted.clear()
            writer = await _open(url, request, shared.tokens["user"])
            await until(lambda: noted == ["begun"])
            writer.close()
            await until(lambda: noted == ["begun", "ended"])
        async with shared.client("user") as client:
            assert (await client.get("/api/v1/projects")).status_code == 200


async def test_the_write_of_a_client_that_left_goes_on(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    create = projects.create

    async def create_slowly(*args: Any, **kwargs: Any) -> Any:
        begun.set()
        await may_end.wait()
        made = await create(*args, **kwargs)
        ended.set()
        return made

    monkeypatch.setattr(projects, "create", create_slowly)
    body = '{"slug":"left-behind","name":"left-behind"}'
    request = (
        "POST /api/v1/projects HTTP/1.1\r\n|Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    )
    async with listening(shared.app) as url:
        writer = await _open(url, request, shared.tokens["admin_only"])
        await begun.wait()
        writer.close()
        await writer.wait_closed()
        may_end.set()
        await ended.wait()
        async with shared.client("admin_only") as client:
            await until(lambda: _has_project(client))


async def test_an_answer_that_requests_share_has_no_client(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[ClientPresence | None] = []
    find_dispatcher, list_runs = health.find_dispatcher, runs.list_runs

    async def note(*args: Any) -> Any:
        noted.append(READER.get())
        return await find_dispatcher(*args)

    async def note_list(*args: Any, **kwargs: Any) -> Any:
        noted.append(READER.get())
        return await list_runs(*args, **kwargs)

    monkeypatch.setattr(health, "find_dispatcher", note)
    monkeypatch.setattr(runs, "list_runs", note_list)
    monkeypatch.setitem(shared.app.state._state, "readiness", health.ReadinessCheck())
    async with listening(shared.app) as url:
        for number, path in enumerate(("/readyz", "/api/v1/runs"), 1):
            request = f"GET {path} HTTP/1.1\r\n|\r\n"
            writer = await _open(url, request, shared.tokens["user"])
            await until(lambda number=number: len(noted) == number)
            writer.close()
    assert noted[0] is None
    assert isinstance(noted[1], ClientPresence)


async def test_a_request_does_not_read_for_the_client_of_the_one_before(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server passes the context of a request to those that wait behind it on the connection."""
    noted: list[ClientPresence | None] = []
    find_dispatcher = health.find_dispatcher

    async def note(*args: Any) -> Any:
        noted.append(READER.get())
        return await find_dispatcher(*args)

    monkeypatch.setattr(health, "find_dispatcher", note)
    monkeypatch.setitem(shared.app.state._state, "readiness", health.ReadinessCheck())
    async with listening(shared.app) as url:
        ready = "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        request = f"GET /api/v1/session:options HTTP/1.1\r\n|\r\n{ready}"
        writer = await _open(url, request, shared.tokens["user"])
        await until(lambda: noted)
        writer.close()
    assert noted == [None]


async def _has_project(client: Any) -> bool:
    answer = await client.get("/api/v1/projects/left-behind")
    return bool(answer.status_code == 200)
