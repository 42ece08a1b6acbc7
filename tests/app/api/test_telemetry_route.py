"""Usual batches of telemetry take a route of their own, which answers as FastAPI's does."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Match

from app.api.telemetry_route import UsualBatches
from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION
from tests.app.api.serving import AppServer
from tests.support.records import make_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

PRESENT = {CONTRACT_HEADER: str(CONTRACT_VERSION)}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request about telemetry, whether the route of usual batches takes it."""
    answers: list[bool] = []
    matches = UsualBatches.matches

    def note(route: UsualBatches, scope: Any) -> Any:
        match, added = matches(route, scope)
        if scope["path"].endswith("/telemetry"):
            answers.append(match is Match.FULL)
        return match, added

    monkeypatch.setattr(UsualBatches, "matches", note)
    return answers


async def send(
    shared: AppServer, who: str, *, attempt: str = "live_attempt", query: str = "", **options: Any
) -> tuple[int, Any]:
    path = f"/api/v1/attempts/{shared.names[attempt]}/telemetry{query}"
    async with shared.client(who) as client:
        answer = await client.post(path, **options)
    document = answer.json()
    document.pop("request_id", None)
    return answer.status_code, document


async def make_next_batch(shared: AppServer) -> dict[str, Any]:
    async with shared.client("live_attempt") as client:
        path = f"/api/v1/leases/{shared.names['live_attempt']}:renew"
        first = (await client.post(path, json={})).json()["acked_seq"] + 1
    return {"first_seq": first, "records": [make_log(shared.names["live_run"], "a line")]}


async def test_a_batch_is_usual_once_its_token_was_looked_up(
    shared: AppServer, taken: list[bool]
) -> None:
    shared.app.state.attempt_tokens._found.clear()
    for is_known in (False, True):
        batch = await make_next_batch(shared) if is_known else {"first_seq": 10**6, "records": []}
        await send(shared, "live_attempt", json=batch, headers=PRESENT)
    assert taken[0] is False
    assert taken[-1] is True


@pytest.mark.parametrize(
    "unusual",
    [
        {"who": "submitter", "headers": PRESENT},
        {"who": "anonymous", "headers": PRESENT},
        {"attempt": "finished_attempt", "headers": PRESENT},
        {"query": "?x=1", "headers": PRESENT},
        {"headers": {}},
        {"headers": {CONTRACT_HEADER: str(CONTRACT_VERSION - 1)}},
        {"headers": {**PRESENT, "Authorization": "Basic eDp5"}},
    ],
    ids=str,
)
async def test_every_other_request_takes_the_ordinary_route(
    shared: AppServer, taken: list[bool], unusual: dict[str, Any]
) -> None:
    batch = await make_next_batch(shared)
    await send(shared, **{"who": "live_attempt", "json": batch, **unusual})
    assert not any(taken)


@pytest.mark.parametrize(
    "body",
    [
        {"content": b"{", "type": "application/json"},
        {"content": b"{}", "type": "application/json"},
        {"content": b'{"first_seq":0,"records":[{}]}', "type": "application/json"},
        {"content": b'{"first_seq":1,"first_seq":1,"records":[]}', "type": "application/json"},
        {"content": b'{"first_seq":999999999,"records":[{}]}', "type": "application/json"},
        {"content": b"{}", "type": "text/plain"},
        {"content": b" " * (9 * 2**20), "type": "application/json"},
    ],
    ids=lambda body: f"{body['content'][:48]!r} {body['type']}",
)
async def test_both_routes_refuse_alike(
    shared: AppServer, taken: list[bool], body: dict[str, Any]
) -> None:
    answers = [
        await send(
            shared,
            "live_attempt",
            content=body["content"],
            headers={**headers, "Content-Type": body["type"]},
        )
        for headers in ({}, PRESENT)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] >= 400
    assert taken == [False, True]


async def test_both_routes_acknowledge_alike(shared: AppServer, taken: list[bool]) -> None:
    batch = await make_next_batch(shared)
    answers = [
        await send(shared, "live_attempt", json=batch, headers=headers)
        for headers in ({}, PRESENT, {})
    ]
    assert answers == [(200, {"acked_seq": batch["first_seq"]})] * 3
    assert [way for way in taken if way] == [True]


async def test_the_route_is_found_below_no_other_path(shared: AppServer) -> None:
    (route,) = (one for one in shared.app.router.routes if isinstance(one, UsualBatches))
    for path in ("/api/v1/attempts/a/telemetry/", "/api/v1/attempts/a/b/telemetry", "/telemetry"):
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "root_path": ""}
        assert route.matches(Request(scope).scope) == (Match.NONE, {})
