"""Live streams of two server processes on one PostgreSQL, which Valkey notifies of each other."""

import contextlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest
import redis

from app.bus.redis import CHANNEL
from tests.e2e.run_history import make_cartpole_definition
from tests.support.postgres import PostgresServer
from tests.support.several_servers import SeveralServers
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes

CHANGES = 8
MOST_SECONDS = 5.0
"""Longest time of a change to a stream of another process, without notifications too."""
MOST_NOTIFIED_SECONDS = 0.4
"""Median with notifications; without them a server looks once a second."""
END_SECONDS = 10.0
"""Longest time until the end of a login ends its streams, on a busy machine."""


@pytest.fixture
def stack(
    postgres_server: PostgresServer, worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SeveralServers]:
    """Two servers without workers, whose jobs therefore stay in the queue."""
    url = postgres_server.create_database(f"live_{worker_id}")
    servers = SeveralServers(
        tmp_path_factory.mktemp("l"), url, settings={"PALESTRA_DAEMONS": "false"}
    )
    try:
        servers.prepare()
        servers.start_broker()
        servers.start_server()
        yield servers
    finally:
        servers.__exit__()


class Follower(threading.Thread):
    """Reads the job events of one server until the stream ends."""

    def __init__(self, url: str, after: int | None, **request: Any) -> None:
        super().__init__(daemon=True)
        self._url, self._request = url, request
        self._query = {"type": "job"} if after is None else {"type": "job", "after": after}
        self.events: list[tuple[float, dict[str, Any]]] = []
        self.is_open = threading.Event()
        self.has_ended = False

    def run(self) -> None:
        # At the end of a test its servers are killed.
        with contextlib.suppress(httpx.TransportError):
            self._read()

    def _read(self) -> None:
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as client:
            options = {"params": self._query, **self._request}
            with client.stream("GET", "/api/v1/events", **options) as answer:
                assert answer.status_code == httpx.codes.OK
                for line in answer.iter_lines():
                    self.is_open.set()
                    if line.startswith("data: "):
                        event = json.loads(line.removeprefix("data: "))
                        self.events.append((time.monotonic(), event))
        self.has_ended = True

    def find(self, job_id: str, state: str) -> float | None:
        """Returns when a state of a job arrived."""
        for moment, event in reversed(self.events):
            if event["job_id"] == job_id and event["data"]["state"] == state:
                return moment
        return None


@contextmanager
def follow(stack: SeveralServers, name: str, **request: Any) -> Iterator[Follower]:
    """Follows the events of one server."""
    request = request or {"headers": {"Authorization": f"Bearer {stack.tokens['user']}"}}
    follower = Follower(stack.address(name), None, **request)
    follower.start()
    assert follower.is_open.wait(20)
    time.sleep(0.5)
    yield follower


def change(stack: SeveralServers, follower: Follower, job_id: str) -> list[float]:
    """Pauses and resumes a job at the first server; returns the delays of the events in seconds."""
    delays = []
    headers = {"Authorization": f"Bearer {stack.tokens['user']}"}
    with httpx.Client(base_url=stack.address("server-1"), headers=headers, timeout=20) as client:
        for number in range(CHANGES):
            verb, state = (("pause", "paused"), ("resume", "queued"))[number % 2]
            known = len(follower.events)
            answer = client.post(f"/api/v1/jobs/{job_id}:{verb}", json={})
            assert answer.status_code == httpx.codes.OK, answer.text
            done = time.monotonic()
            wait_for(
                lambda known=known: len(follower.events) > known,  # type: ignore[misc]
                f"the second server sends {state}",
            )
            arrived = follower.find(job_id, state)
            assert arrived is not None
            delays.append(arrived - done)
    return delays


def count_listeners(stack: SeveralServers) -> int:
    """Returns the number of server processes that Valkey notifies."""
    try:
        with redis.Redis(port=stack.broker_port, socket_timeout=2) as client:
            return int(client.pubsub_numsub(CHANNEL)[0][1])
    except redis.RedisError:
        return 0


def report(figure: str) -> None:
    """Prints a figure, which `pytest -s` shows."""
    sys.stdout.write(f"{figure}\n")


def test_a_stream_brings_the_changes_of_another_server_also_without_valkey(
    stack: SeveralServers,
) -> None:
    wait_for(lambda: count_listeners(stack) == 2, "both servers listen")
    (run,) = stack.submit(make_cartpole_definition(1_000))
    (job,) = stack.get("jobs", experiment=run["experiment_id"])["items"]
    with follow(stack, "server-2") as follower:
        notified = change(stack, follower, job["id"])
        stack.kill("broker")
        alone = change(stack, follower, job["id"])
        stack.start_broker()
        wait_for(lambda: count_listeners(stack) == 2, "both servers listen again")
        again = change(stack, follower, job["id"])
        for name, delays in (("with", notified), ("without", alone), ("after", again)):
            report(f"{name} Valkey: median {statistics.median(delays):.2f} s")
        assert statistics.median(notified) < MOST_NOTIFIED_SECONDS
        assert statistics.median(again) < MOST_NOTIFIED_SECONDS
        states = [event["data"]["state"] for _, event in follower.events]
        assert states == ["paused", "queued"] * (3 * CHANGES // 2)
        ids = [event["id"] for _, event in follower.events]
        assert ids == sorted(set(ids))
        assert not follower.has_ended


def test_a_login_that_expires_ends_its_stream_at_every_server(stack: SeveralServers) -> None:
    origin = {"Origin": stack.url}
    with httpx.Client(base_url=stack.url, timeout=20, trust_env=False) as browser:
        code = stack.login_url.rpartition("#")[2].rpartition("=")[2]
        made = browser.post("/api/v1/session:redeem", json={"code": code}, headers=origin)
        assert made.status_code == httpx.codes.CREATED, made.text
        cookies = dict(browser.cookies)
    with (
        follow(stack, "server-1", cookies=cookies) as first,
        follow(stack, "server-2", cookies=cookies) as second,
        follow(stack, "server-2") as program,
    ):
        time.sleep(4)
        assert not first.has_ended
        assert not second.has_ended
        with psycopg.connect(stack.database_url, autocommit=True) as connection:
            connection.execute(
                "UPDATE login_sessions SET created_at = created_at - interval '15 days'"
            )
        for follower in (first, second):
            wait_for(lambda one=follower: one.has_ended, "the stream ends")  # type: ignore[misc]
        assert not program.has_ended, "a token has an expiry of its own"
