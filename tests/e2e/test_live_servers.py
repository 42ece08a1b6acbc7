"""Live streams of two server processes on one PostgreSQL, which Valkey notifies of each other."""

import contextlib
import json
import threading
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
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.processes

CHANGES = 4


@pytest.fixture(scope="module")
def stack(
    postgres_server: PostgresServer, worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SeveralServers]:
    """Two servers without workers, whose jobs therefore stay in the queue."""
    url = postgres_server.create_migrated_database(f"live_{worker_id}")
    servers = SeveralServers(
        tmp_path_factory.mktemp("l"), url, settings={"PALESTRA_DAEMONS": "false"}
    )
    try:
        servers.prepare()
        servers.start_together("broker", "server")
        yield servers
    finally:
        servers.__exit__()


class Follower(threading.Thread):
    """Reads the job events of one server until the stream ends."""

    def __init__(self, url: str, **request: Any) -> None:
        super().__init__(daemon=True)
        self._url, self._request = url, request
        self.events: list[dict[str, Any]] = []
        self.is_open = threading.Event()
        self.has_ended = False

    def run(self) -> None:
        # At the end of a test its servers are killed.
        with contextlib.suppress(httpx.TransportError):
            self._read()

    def _read(self) -> None:
        options = {"params": {"type": "job"}, **self._request}
        with (
            httpx.Client(base_url=self._url, timeout=PATIENCE_SECONDS, trust_env=False) as client,
            client.stream("GET", "/api/v1/events", **options) as answer,
        ):
            assert answer.status_code == httpx.codes.OK
            for line in answer.iter_lines():
                self.is_open.set()
                if line.startswith("data: "):
                    self.events.append(json.loads(line.removeprefix("data: ")))
        self.has_ended = True

    def has_state(self, job_id: str, state: str) -> bool:
        """Returns whether the newest event of a job has a state."""
        states = [event["data"]["state"] for event in self.events if event["job_id"] == job_id]
        return states[-1:] == [state]


@contextmanager
def follow(stack: SeveralServers, name: str, **request: Any) -> Iterator[Follower]:
    """Follows the events of one server."""
    request = request or {"headers": make_headers(stack)}
    follower = Follower(stack.address(name), **request)
    follower.start()
    assert follower.is_open.wait(PATIENCE_SECONDS)
    yield follower


def make_headers(stack: SeveralServers) -> dict[str, str]:
    return {"Authorization": f"Bearer {stack.tokens['user']}"}


def queue_job(stack: SeveralServers, env_steps: int) -> str:
    (run,) = stack.submit(make_cartpole_definition(env_steps))
    return str(run["job_id"])


def change(stack: SeveralServers, job_id: str, *followers: Follower, times: int = CHANGES) -> None:
    """Pauses and resumes a job at the first server; all followers have to see each change."""
    with httpx.Client(
        base_url=stack.address("server-1"), headers=make_headers(stack), trust_env=False
    ) as client:
        for number in range(times):
            verb, state = (("pause", "paused"), ("resume", "queued"))[number % 2]
            answer = client.post(f"/api/v1/jobs/{job_id}:{verb}", json={})
            assert answer.status_code == httpx.codes.OK, answer.text
            for follower in followers:
                wait_for(
                    lambda one=follower, state=state: one.has_state(job_id, state),  # type: ignore[misc]
                    f"the stream brings {state}",
                )


def count_listeners(stack: SeveralServers) -> int:
    """Returns the number of server processes that Valkey notifies."""
    try:
        with redis.Redis(port=stack.broker_port, socket_timeout=PATIENCE_SECONDS) as client:
            return int(client.pubsub_numsub(CHANNEL)[0][1])
    except redis.RedisError:
        return 0


@contextmanager
def expect_notifications(stack: SeveralServers, number: int = CHANGES) -> Iterator[None]:
    """Checks that Valkey tells its listeners of the changes that the block makes.

    Args:
        stack: The servers.
        number: Least number of notifications. A server whose connection is not back yet sends one
            for several changes.
    """
    with redis.Redis(port=stack.broker_port) as client, client.pubsub() as listener:
        listener.subscribe(CHANNEL)
        yield
        told = 0
        while told < number:
            message = listener.get_message(timeout=PATIENCE_SECONDS)
            assert message is not None, f"{told} notifications in place of {number}"
            told += message["type"] == "message"


def test_a_stream_brings_the_changes_of_another_server_also_without_valkey(
    stack: SeveralServers,
) -> None:
    wait_for(lambda: count_listeners(stack) == 2, "both servers listen")
    job_id = queue_job(stack, 1_000)
    with follow(stack, "server-2") as follower:
        with expect_notifications(stack):
            change(stack, job_id, follower)
        stack.kill("broker")
        change(stack, job_id, follower)
        stack.start_broker()
        wait_for(lambda: count_listeners(stack) == 2, "both servers listen again")
        with expect_notifications(stack, 1):
            change(stack, job_id, follower)
        states = [event["data"]["state"] for event in follower.events]
        assert states == ["paused", "queued"] * (3 * CHANGES // 2)
        ids = [event["id"] for event in follower.events]
        assert ids == sorted(set(ids))
        assert not follower.has_ended


def test_a_login_that_expires_ends_its_stream_at_every_server(stack: SeveralServers) -> None:
    cookies = stack.log_in()
    job_id = queue_job(stack, 1_001)
    with (
        follow(stack, "server-1", cookies=cookies) as first,
        follow(stack, "server-2", cookies=cookies) as second,
        follow(stack, "server-2") as program,
    ):
        change(stack, job_id, first, second, program, times=2)
        with psycopg.connect(stack.database_url, autocommit=True) as connection:
            connection.execute(
                "UPDATE login_sessions SET created_at = created_at - interval '15 days'"
            )
        for follower in (first, second):
            wait_for(lambda one=follower: one.has_ended, "the stream ends")  # type: ignore[misc]
        change(stack, job_id, program, times=2)
        assert not program.has_ended, "a token has an expiry of its own"
