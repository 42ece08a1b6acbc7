"""No request body within the size limit delays other requests by more than 250 ms."""

import time
from collections.abc import Iterator

import pytest

from tests.security import bodies
from tests.security.bodies import Attack
from tests.security.target import LONGEST_DELAY, LatencyProbe, Target, measure_delay, send

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

SHORT = {
    "/api/v1/session",
    "/api/v1/session:redeem",
    "/api/v1/experiments",
    "/api/v1/attempts/{attempt}/telemetry",
    "/api/v1/workers",
}
"""One route of each size limit, and all routes without credentials.

`python -m tests.security` tests every route.
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Target(tmp_path_factory.mktemp("bodies")) as started:
        yield started


def test_no_body_delays_other_requests(target: Target) -> None:
    """A body is parsed in linear time outside the event loop, and the number of its values is
    limited.
    """
    witness = LatencyProbe(target)
    held = {}
    attacks = [*bodies.yield_documents(target.names), *bodies.yield_malformed_bodies()]
    for attack in attacks:
        if attack.path.partition("?")[0] in {*SHORT, "/api/v1/series:query", "/api/v1/runs"}:
            held[attack.name] = _measure_delay(witness, target, attack)
    assert len(held) > 80
    assert {name: wait for name, wait in held.items() if wait > LONGEST_DELAY} == {}


def _measure_delay(witness: LatencyProbe, target: Target, attack: Attack) -> float:
    return measure_delay(witness, lambda: _expect_answer(target, attack))


def _expect_answer(target: Target, attack: Attack) -> None:
    status = send(target, attack.method, attack.path, attack.body, attack.who)
    assert status < 500, f"{attack.name}: {status}"


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


def test_concurrent_large_bodies_do_not_delay_other_requests(target: Target) -> None:
    """Large bodies are parsed one after the other by one thread."""
    from concurrent.futures import ThreadPoolExecutor

    body = bodies.FORMS["numbers"](1_000_000)
    witness = LatencyProbe(target)

    def attack() -> None:
        with ThreadPoolExecutor(8) as pool:
            sent = [
                pool.submit(send, target, "POST", "/api/v1/experiments", body, "user")
                for _ in range(16)
            ]
        assert {one.result() for one in sent} == {422}
        time.sleep(0.1)

    assert measure_delay(witness, attack) <= LONGEST_DELAY
