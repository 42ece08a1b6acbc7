"""Line 15.13: one request of any content up to the body limit holds no other request longer than
250 ms.
"""

import time
from collections.abc import Iterator

import pytest

from tests.security import bodies
from tests.security.bodies import Attack
from tests.security.target import PATIENCE, Target, Witness, send, shortest_hold

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

SHORT = {
    "/api/v1/session",
    "/api/v1/session:redeem",
    "/api/v1/experiments",
    "/api/v1/attempts/{attempt}/telemetry",
    "/api/v1/workers",
}
"""One route of each limit, and all that strangers may use.

`python -m tests.security` takes every route.
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Target(tmp_path_factory.mktemp("bodies")) as started:
        yield started


def test_no_body_holds_the_server(target: Target) -> None:
    """A body is read in linear time, beside the event loop, and what it may hold is bounded."""
    witness = Witness(target)
    held = {}
    attacks = [*bodies.documents(target.names), *bodies.forms()]
    for attack in attacks:
        if attack.path.partition("?")[0] in {*SHORT, "/api/v1/series:query", "/api/v1/runs"}:
            held[attack.name] = _hold(witness, target, attack)
    assert len(held) > 80
    assert {name: wait for name, wait in held.items() if wait > PATIENCE} == {}


def _hold(witness: Witness, target: Target, attack: Attack) -> float:
    return shortest_hold(witness, lambda: _expect_answer(target, attack))


def _expect_answer(target: Target, attack: Attack) -> None:
    status = send(target, attack.method, attack.path, attack.body, attack.who)
    assert status < 500, f"{attack.name}: {status}"


def test_what_strangers_send_is_small_and_counted_before_it_is_read(target: Target) -> None:
    """The search for duplicate keys ran before the rate limit, on bodies of 10 MiB."""
    body = bodies.FORMS["one key twice among many"](360_000)
    assert send(target, "POST", "/api/v1/session", body, "anonymous") == 413
    statuses = [
        target.request("POST", "/api/v1/session", "no object", "anonymous").status_code
        for _ in range(12)
    ]
    assert statuses[0] == 422
    assert statuses[-1] == 429


def test_many_large_bodies_at_once_leave_others_their_turn(target: Target) -> None:
    """Large bodies are read one after the other, by one thread."""
    from concurrent.futures import ThreadPoolExecutor

    body = bodies.FORMS["numbers"](1_000_000)
    witness = Witness(target)

    def attack() -> None:
        with ThreadPoolExecutor(8) as pool:
            sent = [
                pool.submit(send, target, "POST", "/api/v1/experiments", body, "user")
                for _ in range(16)
            ]
        assert {one.result() for one in sent} == {422}
        time.sleep(0.1)

    assert shortest_hold(witness, attack) <= PATIENCE
