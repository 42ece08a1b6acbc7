"""Live streams over HTTP follow what their callers may see, while they are open."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.bus import MemoryBus
from app.services.access import stream_rights
from tests.app.api.serving import ORIGIN, AppServer
from tests.support.listening import listening
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def url(shared: AppServer) -> AsyncIterator[str]:
    async with listening(shared.app) as address:
        yield address


class _ReceivedEvents:
    """The events of an open stream."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.has_ended = False

    def read(self, line: str) -> None:
        if line.startswith("data: "):
            self.events.append(json.loads(line.removeprefix("data: ")))

    def get_data_of(self, kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.events if event.get("type") == kind]


@contextlib.asynccontextmanager
async def _stream(url: str, headers: dict[str, str]) -> AsyncIterator[_ReceivedEvents]:
    received, opened = _ReceivedEvents(), asyncio.Event()

    async def read() -> None:
        async with (
            httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS) as client,
            client.stream("GET", "/api/v1/events", headers=headers) as answer,
        ):
            assert answer.status_code == 200
            opened.set()
            async for line in answer.aiter_lines():
                received.read(line)
        received.has_ended = True

    reading = asyncio.create_task(read())
    try:
        await asyncio.wait_for(opened.wait(), PATIENCE_SECONDS)
        yield received
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading


async def _toggle(served: AppServer, verb: str) -> None:
    """Drains or undrains a worker of the pool `default`, which appends an event."""
    async with served.client("user") as client:
        answer = await client.post(f"/api/v1/workers/{served.names['worker']}:{verb}")
    assert answer.status_code == 200, answer.text


async def _check_rights(served: AppServer) -> None:
    """Checks the open streams as the server does every few seconds."""
    state = served.app.state
    await stream_rights.check(state.hub, state.database, state.settings)


async def _wait_for_all_events(served: AppServer, received: _ReceivedEvents, verb: str) -> None:
    """Pauses or resumes the pool `elsewhere`, and waits for its event, which is the newest."""

    def count() -> int:
        return sum(one["pool"] == "elsewhere" for one in received.get_data_of("pool"))

    before = count()
    async with served.client("user") as client:
        answer = await client.post(f"/api/v1/pools/elsewhere:{verb}", json={"reason": "x"})
    assert answer.status_code == 200, answer.text
    await until(lambda: count() > before)


async def test_a_stream_follows_the_pools_that_admit_its_projects(
    shared: AppServer, url: str
) -> None:
    path = "/api/v1/pools/default/projects/elsewhere"
    member, foreign = (
        {"Authorization": f"Bearer {shared.tokens[who]}"} for who in ("viewer", "foreign")
    )
    async with _stream(url, member) as ours, _stream(url, foreign) as theirs:
        await _toggle(shared, "drain")
        await until(lambda: bool(ours.get_data_of("worker")))
        assert (theirs.get_data_of("worker"), theirs.get_data_of("pool")) == ([], [])
        async with shared.client("user") as client:
            assert (await client.put(path, json={})).status_code == 200
        await _check_rights(shared)
        await _toggle(shared, "undrain")
        await until(lambda: len(theirs.get_data_of("worker")) == 1)
        async with shared.client("user") as client:
            assert (await client.delete(path)).status_code == 204
        await _check_rights(shared)
        await _wait_for_all_events(shared, theirs, "pause")
        known = len(theirs.get_data_of("pool"))
        await _toggle(shared, "drain")
        await _toggle(shared, "undrain")
        async with shared.client("user") as client:
            paused = await client.post("/api/v1/pools/default:pause", json={"reason": "x"})
            assert paused.status_code == 200
            assert (await client.post("/api/v1/pools/default:resume")).status_code == 200
        await until(
            lambda: len(ours.get_data_of("worker")) == 4 and len(ours.get_data_of("pool")) >= 2
        )
        await _wait_for_all_events(shared, theirs, "resume")
        assert len(theirs.get_data_of("worker")) == 1
        assert len(theirs.get_data_of("pool")) == known + 1


async def test_rights_are_checked_again_without_a_notification(shared: AppServer) -> None:
    class CountingHub:
        checks = 0

        @property
        def streams(self) -> tuple[()]:
            self.checks += 1
            return ()

    hub: Any = CountingHub()
    settings = shared.app.state.settings
    watching = asyncio.create_task(
        stream_rights.watch(hub, shared.database, MemoryBus(), settings, period_seconds=0.01)
    )
    await until(lambda: hub.checks >= 3)
    watching.cancel()


async def test_a_sign_out_ends_the_streams_of_the_user(shared: AppServer, url: str) -> None:
    browser, csrf = await shared.browser()
    cookie = {"Cookie": "; ".join(f"{one}={value}" for one, value in browser.cookies.items())}
    token = {"Authorization": f"Bearer {shared.tokens['user']}"}
    async with _stream(url, cookie) as login, _stream(url, token) as program:
        headers = {"Origin": ORIGIN, "X-CSRF-Token": csrf}
        async with contextlib.aclosing(browser):
            answer = await browser.post("/api/v1/account:sign-out", headers=headers)
        assert answer.status_code == 200, answer.text
        await until(lambda: login.has_ended)
        assert not program.has_ended, "tokens stay"
