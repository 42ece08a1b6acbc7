"""One connection for many scopes, and its long-poll twin, over HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from httpx_sse import EventSource

from app.settings import Settings
from tests.app.api.serving import AppServer, serve
from tests.support.listening import listening
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url(shared: AppServer) -> AsyncIterator[str]:
    async with listening(shared.app) as address:
        yield address


class _Received:
    """What a stream brought: for each subscription its events, and the numbers to reload."""

    def __init__(self) -> None:
        self.events: dict[int, list[dict[str, Any]]] = {}
        self.resync: list[int] = []
        self.cursors: list[int] = []
        self.has_ended = False

    def take(self, kind: str, data: str) -> None:
        if kind == "cursors":
            self.cursors = json.loads(data)
            return
        head, _, text = data.partition("\n")
        numbers = [int(number) for number in head.split(",")]
        if kind == "resync":
            self.resync += numbers
            return
        for number in numbers:
            self.events.setdefault(number, []).append(json.loads(text))

    def ids(self, number: int) -> list[int]:
        return [event["id"] for event in self.events.get(number, [])]


@contextlib.asynccontextmanager
async def _stream(url: str, token: str, *subscriptions: dict[str, Any]) -> AsyncIterator[_Received]:
    received, opened = _Received(), asyncio.Event()

    async def read() -> None:
        async with (
            httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS) as client,
            client.stream(
                "POST",
                "/api/v1/events:stream",
                headers={"Authorization": f"Bearer {token}"},
                json={"subscriptions": subscriptions},
            ) as answer,
        ):
            assert answer.status_code == 200, await answer.aread()
            opened.set()
            async for message in EventSource(answer).aiter_sse():
                if message.data:
                    received.take(message.event, message.data)
        received.has_ended = True

    reading = asyncio.create_task(read())
    try:
        await asyncio.wait_for(opened.wait(), PATIENCE_SECONDS)
        yield received
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading


async def _poll(client: httpx.AsyncClient, *subscriptions: dict[str, Any], wait: float = 0) -> Any:
    body = {"subscriptions": subscriptions, "wait": wait}
    answer = await client.post("/api/v1/events:poll", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _poll_all(client: httpx.AsyncClient, *scopes: dict[str, Any]) -> dict[int, list[int]]:
    """Polls until nothing is new; returns the IDs that each subscription got."""
    found: dict[int, list[int]] = {number: [] for number in range(len(scopes))}
    cursors: list[Any] = [scope.get("after") for scope in scopes]
    while True:
        asked = [{**one, "after": after} for one, after in zip(scopes, cursors, strict=True)]
        answer = await _poll(client, *asked)
        assert answer["resync"] == []
        for item in answer["events"]:
            for number in item["subscriptions"]:
                found[number].append(item["event"]["id"])
        if not answer["events"] and answer["cursors"] == cursors:
            return found
        cursors = answer["cursors"]


async def test_a_poll_brings_what_a_stream_brings(shared: AppServer, url: str) -> None:
    run = shared.names["live_run"]
    scopes = (
        {"project": "default", "after": 0},
        {"runs": [run], "after": 0},
        {"types": ["run", "job"], "after": 3},
    )
    async with (
        shared.client("user") as client,
        _stream(url, shared.tokens["user"], *scopes) as received,
    ):
        polled = await _poll_all(client, *scopes)
        await until(lambda: all(received.ids(n)[-1:] == polled[n][-1:] for n in polled))
        assert {number: received.ids(number) for number in polled} == polled
        assert all(polled.values())
        assert all(ids == sorted(set(ids)) for ids in polled.values())
        assert {one["run_id"] for one in received.events[1]} == {run}
        assert {one["type"] for one in received.events[2]} == {"run", "job"}
        assert min(polled[2]) > 3
        newest = max(polled[0])
        fresh = [{**one, "after": newest} for one in scopes]
        streams = len(shared.app.state.hub.streams)
        waiting = asyncio.create_task(_poll(client, *fresh, wait=20))
        await until(lambda: len(shared.app.state.hub.streams) > streams)
        job = shared.names["queued_job"]
        await client.post(f"/api/v1/jobs/{job}:pause", json={})
        answer = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        assert answer["events"][0]["subscriptions"] == [0, 2]
        polled_ids = [one["event"]["id"] for one in answer["events"]]
        await until(lambda: set(polled_ids) <= set(received.ids(0)))
        fresh_ids = [one["id"] for one in received.events[0] if one["type"] in {"run", "job"}]
        assert received.ids(2) == [one for one in fresh_ids if one > 3]
        await client.post(f"/api/v1/jobs/{job}:resume", json={})


async def test_one_subscription_is_reloaded_and_the_others_go_on(
    shared: AppServer, url: str
) -> None:
    scopes: tuple[dict[str, Any], ...] = ({"after": 2**53 - 1}, {"after": 0})
    async with (
        shared.client("user") as client,
        _stream(url, shared.tokens["user"], *scopes) as received,
    ):
        await until(lambda: received.resync and received.ids(1))
        assert received.resync == [0]
        answer = await _poll(client, *scopes)
        assert answer["resync"] == [0]


async def test_a_subscription_of_an_unknown_project_is_refused_with_its_place(
    shared: AppServer,
) -> None:
    body = {"subscriptions": [{"project": "default"}, {"project": "elsewhere-not"}]}
    async with shared.client("reader") as client:
        for route in ("stream", "poll"):
            answer = await client.post(f"/api/v1/events:{route}", json=body)
            assert answer.status_code == 404, answer.text
            assert answer.json()["errors"][0]["pointer"] == "/subscriptions/1/project"
        empty = await client.post("/api/v1/events:poll", json={"subscriptions": []})
        assert empty.status_code == 422
        too_many: dict[str, Any] = {"subscriptions": [{}] * 65}
        assert (await client.post("/api/v1/events:poll", json=too_many)).status_code == 422
        unknown = {"subscriptions": [{"types": ["jobs"]}]}
        refused = await client.post("/api/v1/events:poll", json=unknown)
        assert refused.json()["errors"][0]["pointer"] == "/subscriptions/0/types/0"


async def test_a_stream_ends_when_its_project_may_not_be_read_any_more(
    shared: AppServer, url: str
) -> None:
    slug = "default"
    async with shared.client("user") as client:
        member = await client.get(f"/api/v1/projects/{slug}/members")
        viewer = next(one for one in member.json()["items"] if one["role"] == "viewer")
        path = f"/api/v1/projects/{slug}/members/{viewer['user']}"
        async with (
            _stream(url, shared.tokens["viewer"], {"project": slug}) as within,
            _stream(url, shared.tokens["viewer"], {}) as everywhere,
        ):
            assert (await client.delete(path)).status_code == 204
            await until(lambda: within.has_ended)
            assert not everywhere.has_ended, "a stream of all projects only loses one"
        assert (await client.put(path, json={"role": "viewer"})).status_code == 200


async def test_limits_of_streams_name_the_remedy_and_the_time(
    sqlite_file: Path, tmp_path: Path
) -> None:
    settings = {"sse_streams": 3, "sse_streams_per_user": 2, "sse_streams_per_credential": 2}
    assert Settings(**settings).sse_streams == 3
    async with (
        serve(f"sqlite:///{sqlite_file}", tmp_path, **settings) as server,
        listening(server.app) as address,
        _stream(address, server.tokens["user"], {}),
        _stream(address, server.tokens["user"], {}),
        server.client("user") as client,
        server.client("viewer") as other,
        server.client("foreign") as third,
    ):
        poll = {"subscriptions": [{}], "wait": 5}
        refused = await client.post("/api/v1/events:poll", json=poll)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert int(refused.headers["Retry-After"]) > 0
        waiting = asyncio.create_task(other.post("/api/v1/events:poll", json=poll))
        await until(lambda: len(server.app.state.hub.streams) == 3)
        full = await third.post("/api/v1/events:poll", json=poll)
        assert (full.status_code, full.json()["code"]) == (503, "server_streams_full")
        assert int(full.headers["Retry-After"]) > 0
        assert (await waiting).status_code == 200
