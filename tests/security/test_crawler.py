"""Nothing of another project is shown: a crawler asks every route of the API's document.

Two projects have markers in all texts. Callers of one of them ask with IDs of their own and of the
other project: lists with all pages and filters, exports, streams while the other project works, and
changes, which are rolled back.
"""

import asyncio
import itertools
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import func, select

from app.db.models.events import EventRow
from app.services.events import event_log
from tests.app.api.serving import AppServer
from tests.security.existing_objects import CALLS
from tests.security.test_existing_objects import make_rolled_back_write, substitute
from tests.support.documented_statuses import read_paths
from tests.support.listening import listening
from tests.support.marked_project import (
    MarkedProject,
    make_marked_project,
    make_missing_id,
    share_worker,
)
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLERS = ("maintainer", "viewer", "service", "worker", "live")
OWN_ROUTES = {"maintainer": 40, "viewer": 25, "service": 25, "worker": 0, "live": 0}
"""Least numbers of routes that show a caller its own marker: without them nothing was asked."""
FILTERS = {
    "experiment": "experiment_id",
    "run": "run_id",
    "object_id": "run_id",
    "user": "user_id",
    "pool": "pool",
    "project": "project",
}
"""Query parameters that name an object, with the IDs that they are given."""
TELLS = {"PUT /api/v1/projects/{slug}/members/{user}": "user_id"}
"""Routes that tell the ID of what a request names: maintainers add users by their login names."""
ENDLESS = ("/events", "/events:stream")
MAX_PAGES = 60
PARAMETER = re.compile(r"{(\w+)}")


@dataclass
class CrawlFindings:
    """Secrets of the other project, and routes with the caller's own project, in the answers."""

    own: MarkedProject
    other: MarkedProject
    asked: int = 0
    leaks: list[str] = field(default_factory=list)
    shows_own: set[str] = field(default_factory=set)
    """Routes whose answers had the marker or the number of the caller's project."""

    def read(self, route: str, request: str, answer: httpx.Response) -> None:
        self.asked += 1
        text = f"{answer.text}{[*answer.headers.items()]}"
        if self.other.marker in text and self.other.marker not in request:
            self.leaks.append(f"{request}: {answer.status_code} shows the marker")
        told = self.other.ids[TELLS[route]] if route in TELLS else ()
        for secret in self.other.secrets:
            if secret in text and secret not in request and secret not in told:
                self.leaks.append(f"{request}: {answer.status_code} shows {secret}")
        if self.own.marker in text.replace(request, "") or str(self.own.number) in text:
            self.shows_own.add(route)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def marked_projects(shared: AppServer) -> AsyncIterator[tuple[MarkedProject, MarkedProject]]:
    """Two projects with markers on one server, and a worker that they share."""
    made = await make_marked_project(shared, "alpha"), await make_marked_project(shared, "beta")
    await share_worker(*made)
    yield made


def list_operations() -> list[tuple[str, str, list[str]]]:
    """Returns method, path and query parameters of every operation of the API's document."""
    return [
        (
            method.upper(),
            path,
            [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"],
        )
        for path, operations in sorted(read_paths().items())
        for method, operation in operations.items()
    ]


def yield_requests(
    method: str, path: str, query: list[str], ids: list[dict[str, list[str]]]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the URLs of a route, with the objects that each URL names."""
    names = PARAMETER.findall(path)
    values = [
        [one for known in ids for one in known.get(name, ())[:2]] or [f"no-{name}"]
        for name in names
    ]
    for chosen in itertools.product(*values):
        named = dict(zip(names, chosen, strict=True))
        url = path
        for name, value in named.items():
            url = url.replace(f"{{{name}}}", value)
        yield url, named
        for parameter in query if method == "GET" else ():
            for known in ids:
                for value in known.get(FILTERS.get(parameter, ""), ())[:2]:
                    yield f"{url}?{parameter}={value}", named
        if "text" in query:
            yield f"{url}?text=mk", named


async def crawl(
    shared: AppServer, own: MarkedProject, other: MarkedProject, who: str
) -> CrawlFindings:
    """Asks every route as one caller."""
    seen = CrawlFindings(own, other)
    ids = [{**side.ids, "pool": [f"{side.marker}-pool"]} for side in (own, other)]
    async with shared.client(f"{own.side} {who}") as client:
        for method, path, query in list_operations():
            route = f"{method} {path}"
            if path.endswith(ENDLESS) or (who in {"worker", "live"} and method == "DELETE"):
                continue
            for url, named in yield_requests(method, path, query, ids):
                await _ask(seen, client, route, (method, url), named)
                if "cursor" in query and "?" not in url:
                    await _read_pages(seen, client, route, url)
    return seen


async def _ask(
    seen: CrawlFindings,
    client: httpx.AsyncClient,
    route: str,
    request: tuple[str, str],
    named: dict[str, str],
) -> None:
    """Sends a request with a valid body, for routes that have one for each project's objects."""
    call = CALLS.get(route.replace("/api/v1", "", 1))
    method, url = request
    bodies: list[Any] = [None]
    if call is not None:
        sides = (seen.own, seen.other)
        known = [{name: ids[0] for name, ids in side.ids.items() if ids} for side in sides]
        if "?" not in url:
            url += substitute(call.query, {**known[0], **named})
        if call.body is not None:
            bodies = [substitute(call.body, {**one, **named}) for one in known]
    for body in bodies:
        options = {} if body is None else {"json": body}
        answer = await client.request(method, url, **options)
        seen.read(route, f"{method} {url} {json.dumps(body)}", answer)


async def _read_pages(seen: CrawlFindings, client: httpx.AsyncClient, route: str, url: str) -> None:
    cursor = ""
    for _ in range(MAX_PAGES):
        page = f"{url}?limit=1{cursor}"
        answer = await client.get(page)
        seen.read(route, page, answer)
        following = answer.json().get("next_cursor") if answer.status_code == 200 else None
        if following is None:
            return
        cursor = f"&cursor={following}"


@pytest.mark.parametrize("who", CALLERS)
async def test_no_answer_shows_the_other_project(
    shared: AppServer,
    marked_projects: tuple[MarkedProject, MarkedProject],
    monkeypatch: pytest.MonkeyPatch,
    who: str,
) -> None:
    for database in (shared.database, shared.reserved):
        monkeypatch.setattr(database, "write", make_rolled_back_write(database))
    seen = await crawl(shared, *marked_projects, who)
    print(f"{who}: {seen.asked} answers, {len(seen.shows_own)} routes show its own project")  # noqa: T201
    assert not seen.leaks, "\n".join(["", *seen.leaks[:50]])
    assert seen.asked > 150
    assert len(seen.shows_own) >= OWN_ROUTES[who], sorted(seen.shows_own)
    assert OWN_ROUTES[who] == 0 or "POST /api/v1/series:query" in seen.shows_own


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def address(shared: AppServer) -> AsyncIterator[str]:
    """URL of the server for clients that read streams; its streams end with it."""
    async with listening(shared.app) as url:
        yield url


@pytest.mark.parametrize("limited", [False, True], ids=["all projects", "one project"])
@pytest.mark.parametrize("after", ["0", None])
async def test_no_stream_shows_the_other_project(
    shared: AppServer,
    marked_projects: tuple[MarkedProject, MarkedProject],
    address: str,
    *,
    limited: bool,
    after: str | None,
) -> None:
    """Reads a stream from the beginning and from now on, while both projects work."""
    own, other = marked_projects
    query = {"project": own.project.slug} if limited else {}
    query |= {} if after is None else {"after": after}
    heard = bytearray()
    headers = {"Authorization": f"Bearer {shared.tokens[f'{own.side} maintainer']}"}
    async with (
        httpx.AsyncClient(base_url=address, timeout=PATIENCE_SECONDS) as client,
        client.stream("GET", "/api/v1/events", params=query, headers=headers) as answer,
    ):
        assert answer.status_code == 200
        reading = asyncio.create_task(_read(answer, heard))
        await until(lambda: b": ping" in heard, "the stream has a cursor")
        await other.act()
        await own.act()
        async with shared.database.read() as session:
            newest = await session.scalar(
                select(func.max(EventRow.id)).where(EventRow.project_id == own.project.id)
            )
        await until(lambda: b"id: %d\n" % newest in heard, "its newest event, the last of all")
        reading.cancel()
    text = heard.decode()
    assert text.count("data:") >= 3
    assert any(secret in text for secret in own.secrets)
    assert other.marker not in text
    assert [secret for secret in other.secrets if secret in text] == []


async def _end_streams(shared: AppServer) -> None:
    """Ends the open streams once they have sent all events."""
    hub = shared.app.state.hub
    async with shared.database.read() as session:
        newest = await event_log.read_cursor(session)
    await until(lambda: hub.offered_to >= newest and not any(one.queued for one in hub.streams))
    for stream in hub.streams:
        stream.close()


async def _read(answer: httpx.Response, heard: bytearray) -> None:
    async for chunk in answer.aiter_bytes():
        heard += chunk


@pytest.mark.parametrize("parameter", ["run", "experiment"])
async def test_a_stream_of_a_foreign_object_is_as_silent_as_that_of_a_missing_one(
    shared: AppServer,
    marked_projects: tuple[MarkedProject, MarkedProject],
    address: str,
    parameter: str,
) -> None:
    own, other = marked_projects
    foreign = other.ids[f"{parameter}_id"][0]
    heard = [bytearray(), bytearray()]
    headers = {"Authorization": f"Bearer {shared.tokens[f'{own.side} maintainer']}"}
    options = {"base_url": address, "timeout": PATIENCE_SECONDS}
    async with httpx.AsyncClient(headers=headers, **options) as client:
        for wanted, into in zip((foreign, make_missing_id(foreign)), heard, strict=True):
            query = {"after": "0", parameter: wanted}
            async with client.stream("GET", "/api/v1/events", params=query) as answer:
                assert answer.status_code == 200
                reading = asyncio.create_task(_read(answer, into))
                await other.act()
                await _end_streams(shared)
                await reading
    assert b"data:" not in heard[0]
    assert heard[0] == heard[1]


async def test_the_stream_of_a_foreign_project_is_refused(
    shared: AppServer, marked_projects: tuple[MarkedProject, MarkedProject]
) -> None:
    own, other = marked_projects
    async with shared.client(f"{own.side} maintainer") as client:
        answer = await client.get(f"/api/v1/events?project={other.project.slug}")
        assert answer.status_code == 404


async def test_a_foreign_id_is_answered_as_a_missing_one(
    shared: AppServer,
    marked_projects: tuple[MarkedProject, MarkedProject],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1,000 random requests: status, headers and body are equal but for the ID itself."""
    for database in (shared.database, shared.reserved):
        monkeypatch.setattr(database, "write", make_rolled_back_write(database))
    own, other = marked_projects
    chooser = random.Random(11)
    routes = [
        one for one in list_operations() if PARAMETER.search(one[1]) and "attempt_id" not in one[1]
    ]
    unlike = []
    statuses: dict[int, int] = {}
    async with shared.client(f"{own.side} maintainer") as client:
        for _ in range(1_000):
            method, path, _ = chooser.choice(routes)
            foreign = {name: chooser.choice(values) for name, values in other.ids.items() if values}
            absent = {name: make_missing_id(value) for name, value in foreign.items()}
            call = CALLS.get(f"{method} {path.removeprefix('/api/v1')}")
            said = []
            for ids in (foreign, absent):
                body = None if call is None or call.body is None else substitute(call.body, ids)
                options = {} if body is None else {"json": body}
                url = path if call is None else path + call.query
                answer = await client.request(method, substitute(url, ids), **options)
                said.append(_shape(answer, ids))
            statuses[said[0][0]] = statuses.get(said[0][0], 0) + 1
            if said[0] != said[1]:
                unlike.append(f"{method} {path}: {said}")
    print(f"statuses of 1,000 foreign IDs: {statuses}")  # noqa: T201
    assert not unlike, "\n".join(["", *unlike[:50]])
    assert statuses[404] > 600


def _shape(answer: httpx.Response, ids: dict[str, str]) -> tuple[int, str, list[str]]:
    text = answer.text
    for value in sorted(ids.values(), key=len, reverse=True):
        text = text.replace(value, "ID")
    text = re.sub(r'"(instance|request_id|trace_id)":"[^"]*"', "", text)
    return answer.status_code, text, sorted(answer.headers)
