"""Request bodies within the size limit keep no other request waiting.

`benchmarks/attacks.py` measures how long others wait beside each body.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.api import strict_body
from app.services.telemetry import decoding
from palestra.contract import strict_json
from tests.app.api.serving import AppServer
from tests.security import bodies
from tests.security.bodies import Attack
from tests.security.target import Target, send

SHORT = {
    "/api/v1/session",
    "/api/v1/session:redeem",
    "/api/v1/experiments",
    "/api/v1/attempts/{attempt}/telemetry",
    "/api/v1/workers",
}
"""One route of each size limit, and all routes without credentials.

The benchmark sends to every route.
"""
LARGE = 70_000
"""Size in bytes from which a body is parsed outside of the event loop, at the latest."""

processes = pytest.mark.processes


def list_attacks(names: dict[str, str]) -> list[Attack]:
    attacks = [*bodies.yield_documents(names), *bodies.yield_malformed_bodies()]
    routes = {*SHORT, "/api/v1/series:query", "/api/v1/runs"}
    return [attack for attack in attacks if attack.path.partition("?")[0] in routes]


@processes
def test_every_body_is_answered(target: Target) -> None:
    attacks = list_attacks(target.names)
    assert len(attacks) > 80
    for _, path, who, _ in bodies.list_routes():
        assert path.format(**target.names)
        assert who in {*target.tokens, "anonymous"}
    for attack in attacks:
        status = send(target, attack.method, attack.path, attack.body, attack.who)
        assert status < 500, f"{attack.name}: {status}"


class Parser:
    """Notes where texts are parsed, and how many at a time."""

    def __init__(self) -> None:
        self.loop_thread = threading.get_ident()
        self.largest_in_loop = 0
        self.large = 0
        self.at_once = 0
        self.most_at_once = 0
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def check(self, text: Any, **options: Any) -> Any:
        if threading.get_ident() == self.loop_thread:
            self.largest_in_loop = max(self.largest_in_loop, len(text))
            return strict_json.check_json(text, **options)
        self.large += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.set()
        self.may_go_on.wait()
        try:
            return strict_json.check_json(text, **options)
        finally:
            self.at_once -= 1


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parser]:
    noting = Parser()
    for module in (strict_body, decoding):
        monkeypatch.setattr(module, "check_json", noting.check)
    yield noting
    noting.may_go_on.set()


@pytest.mark.asyncio(loop_scope="module")
async def test_large_bodies_are_parsed_outside_of_the_event_loop(
    shared: AppServer, parser: Parser
) -> None:
    names = {
        name: shared.names[of]
        for name, of in (
            ("run", "live_run"),
            ("attempt", "live_attempt"),
            ("job", "live_job"),
            ("worker", "worker"),
        )
    }
    tokens = {"attempt": "live_attempt", "worker": "enrolment"}
    for attack in list_attacks(names):
        async with shared.client(tokens.get(attack.who, attack.who)) as client:
            headers = {"Content-Type": "application/json"}
            path = attack.path.format(**names)
            await client.request(attack.method, path, content=attack.body, headers=headers)
    assert parser.large > 30
    assert parser.largest_in_loop < LARGE


@pytest.mark.asyncio(loop_scope="module")
async def test_other_requests_are_answered_while_bodies_are_parsed_one_after_the_other(
    shared: AppServer, parser: Parser
) -> None:
    body = bodies.FORMS["numbers"](1_000_000)
    headers = {"Content-Type": "application/json"}
    parser.may_go_on.clear()
    async with shared.client("user") as client:
        asked = [
            asyncio.create_task(client.post("/api/v1/experiments", content=body, headers=headers))
            for _ in range(8)
        ]
        await asyncio.to_thread(parser.begun.wait)
        for _ in range(3):
            assert (await client.get("/api/v1/session")).status_code == 200
        assert not any(one.done() for one in asked)
        parser.may_go_on.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {422}
    assert (parser.large, parser.most_at_once) == (8, 1)


@processes
def test_requests_without_credentials_are_limited_before_they_are_parsed(target: Target) -> None:
    """Regression: bodies of 10 MiB were searched for duplicate keys before the rate
    limit applied.
    """
    body = bodies.FORMS["one key twice among many"](360_000)
    assert send(target, "POST", "/api/v1/session", body, "anonymous") == 413
    guess = {"user": "nobody", "password": "a wrong one"}
    statuses = [
        target.request("POST", "/api/v1/session", guess, "anonymous").status_code for _ in range(12)
    ]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert target.request("POST", "/api/v1/session", "no object", "anonymous").status_code == 429


@processes
def test_concurrent_large_bodies_are_answered(target: Target) -> None:
    body = bodies.FORMS["numbers"](1_000_000)
    with ThreadPoolExecutor(8) as pool:
        sent = [
            pool.submit(send, target, "POST", "/api/v1/experiments", body, "user")
            for _ in range(16)
        ]
        assert target.request("GET", "/api/v1/session").status_code == 200
    assert {one.result() for one in sent} == {422}
