"""Streams are written straight to their connections, and through ASGI when the client is behind."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio

from app.api import stream as stream_answers
from app.connections import ChunkedAnswer
from app.db.engine import Database
from app.services.events import event_log
from app.services.events.subscriptions import EventSubscription
from tests.app.api.serving import AppServer
from tests.support.listening import listening
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url(shared: AppServer) -> AsyncIterator[str]:
    async with listening(shared.app) as address:
        yield address


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each direct write, whether the connection took it."""
    results: list[bool] = []
    write = ChunkedAnswer.write

    def noted(self: ChunkedAnswer, chunk: bytes) -> bool:
        results.append(write(self, chunk))
        return results[-1]

    monkeypatch.setattr(ChunkedAnswer, "write", noted)
    return results


async def _record(served: AppServer, *texts: str) -> int:
    """Records an event for each text in one transaction; returns the newest ID of the log."""
    database: Database = served.database
    async with database.write() as session:
        for text in texts:
            data = {"text": text}
            event_log.record(session, "artifact", data, project_id=served.world.project_id)
    async with database.read() as session:
        return await event_log.read_cursor(session)


@contextlib.asynccontextmanager
async def _open(
    url: str, token: str, *, numbered: bool = False
) -> AsyncIterator[AsyncIterator[str]]:
    """Yields the text of a stream after its opening, which says that it has a cursor."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS, headers=headers) as client:
        scope = {"types": ["artifact"]}
        request = (
            client.build_request("POST", "/api/v1/events:stream", json={"subscriptions": [scope]})
            if numbered
            else client.build_request("GET", "/api/v1/events", params={"type": "artifact"})
        )
        answer = await client.send(request, stream=True)
        try:
            assert answer.status_code == 200
            text, opening = answer.aiter_text(), ""
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not opening.endswith(("]\n\n", ": ping\n\n")):
                    opening += await anext(text)
            yield text
        finally:
            await answer.aclose()


async def _read_until(answer: AsyncIterator[str], last: int) -> str:
    """Reads text until the event `last` is complete."""
    text = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while f"id: {last}\n" not in text or not text.endswith("\n\n"):
            text += await anext(answer)
    return text


def _list_ids(text: str) -> list[int]:
    return [json.loads(line[6:])["id"] for line in text.split("\n") if line.startswith('data: {"')]


def _has_offered(served: AppServer, event_id: int) -> bool:
    return bool(served.app.state.hub.offered_to >= event_id)


def _get_streams(served: AppServer) -> list[EventSubscription]:
    return list(served.app.state.hub.streams)


@pytest.mark.parametrize("numbered", [False, True])
async def test_a_direct_stream_brings_what_a_stream_through_asgi_brings(
    shared: AppServer,
    url: str,
    written: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    numbered: bool,
) -> None:
    token = shared.tokens["user"]
    async with _open(url, token, numbered=numbered) as direct:
        await until(lambda: len(_get_streams(shared)) == 1)
        monkeypatch.setattr(stream_answers, "find_direct_answer", lambda _: None)
        async with _open(url, token, numbered=numbered) as layered:
            await until(lambda: len(_get_streams(shared)) == 2)
            (through_asgi,) = [one for one in _get_streams(shared) if one.write_now is None]
            last = 0
            for number in range(5):
                last = await _record(shared, f"{number}\n\ndata: x", "ü")
                await until(partial(_has_offered, shared, last))
            one, other = [await _read_until(text, last) for text in (direct, layered)]
            assert through_asgi.write_now is None
    assert _list_ids(one) == list(range(last - 9, last + 1))
    assert one == other
    assert written.count(True) >= 2
    assert all(written)


async def test_a_client_that_falls_behind_gets_every_event_once(
    shared: AppServer, url: str, written: list[bool]
) -> None:
    """It goes from direct writes to the queue and back, and delays no other client."""
    token = shared.tokens["user"]
    async with _open(url, token) as slow:
        await until(lambda: len(_get_streams(shared)) == 1)
        (behind,) = _get_streams(shared)
        async with _open(url, token) as quick:
            sent, last = 0, 0
            # The buffers of both systems hold some megabytes of it.
            while not behind.queued and sent < 400:
                last = await _record(shared, *["x" * 60_000] * 10)
                sent += 10
                assert len(_list_ids(await _read_until(quick, last))) == 10
            assert behind.queued
            for _ in range(3):
                last = await _record(shared, "small")
                await _read_until(quick, last)
                sent += 1
        assert False in written
        received = _list_ids(await _read_until(slow, last))
        assert len(received) == sent
        assert received == sorted(set(received))
        assert not behind.has_overflowed
        await until(lambda: not behind.queued)
        written.clear()
        # The task of the stream may not have returned yet from what it sent last.
        for _ in range(100):
            last = await _record(shared, "direct again")
            assert _list_ids(await _read_until(slow, last)) == [last]
            if written:
                break
        assert written == [True]


async def test_a_request_behind_a_stream_waits_for_its_end(
    shared: AppServer, url: str, written: list[bool]
) -> None:
    """A pipelined request becomes the newest of the connection, and is not written to."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    reader, writer = await asyncio.open_connection(host, port)
    head = f"Host: {host}\r\nAuthorization: Bearer {shared.tokens['user']}\r\n\r\n"
    paths = ("/api/v1/events?type=artifact", "/healthz")
    writer.write("".join(f"GET {path} HTTP/1.1\r\n{head}" for path in paths).encode())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await reader.readuntil(b": ping\n\n\r\n")
        last = await _record(shared, "first")
        chunk = await reader.readuntil(b"\n\n\r\n")
        assert b"id: %d\n" % last in chunk
        size, _, content = chunk.partition(b"\r\n")
        assert int(size, 16) == len(content) - 2
        assert written == [True]
        (stream,) = _get_streams(shared)
        stream.close()
        assert await reader.readexactly(5) == b"0\r\n\r\n"
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_closing_connection_takes_no_direct_writes(
    shared: AppServer, url: str, written: list[bool]
) -> None:
    async with _open(url, shared.tokens["user"]):
        await until(lambda: len(_get_streams(shared)) == 1)
        (stream,) = _get_streams(shared)
        stream.close()
        await _record(shared, "after the end")
        await until(lambda: not _get_streams(shared))
    assert written == []


async def test_an_answer_that_has_not_begun_takes_no_direct_writes() -> None:
    def make(**changes: object) -> ChunkedAnswer:
        fresh = {
            "flow": SimpleNamespace(write_paused=False),
            "transport": SimpleNamespace(is_closing=lambda: False, write=lambda _: None),
            "response_started": True,
            "response_complete": False,
            "chunked_encoding": True,
        }
        return ChunkedAnswer(SimpleNamespace(**{**fresh, **changes}))  # type: ignore[arg-type]

    assert make().write(b"1\r\nx\r\n")
    assert not make(response_started=False).write(b"1\r\nx\r\n")
    assert not make(response_complete=True).write(b"1\r\nx\r\n")
    assert not make(chunked_encoding=False).write(b"1\r\nx\r\n")
    assert not make(flow=SimpleNamespace(write_paused=True)).write(b"1\r\nx\r\n")
