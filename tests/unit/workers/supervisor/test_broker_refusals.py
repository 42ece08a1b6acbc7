"""A worker waits while the broker refuses, whatever the reason, and goes on by itself."""

import json
import signal
import threading

import pytest
import redis
from scripted_server import ScriptedServer
from worker_bench import QUEUE, WorkerBench

from tests.support.process_stack import find_free_port
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.processes

Command = tuple[str, ...]
REFUSALS: dict[str, tuple[Command, Command]] = {
    "read only": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    "OutOfMemory": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "NOREPLICAS": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
    "permissions to run": (
        ("ACL", "SETUSER", "default", "-brpop"),
        ("ACL", "SETUSER", "default", "+brpop"),
    ),
    "WRONGTYPE": (("SADD", QUEUE, "member"), ("DEL", QUEUE)),
    "password|Authentication": (
        ("ACL", "SETUSER", "default", "resetpass", ">secret"),
        ("ACL", "SETUSER", "default", "nopass"),
    ),
}
"""Commands that make a broker refuse, and let it answer again, by a part of the reason."""


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_worker_whose_broker_refuses_waits_and_takes_jobs_again(
    bench: WorkerBench, server: ScriptedServer, reason: str
) -> None:
    refuse, allow = REFUSALS[reason]
    bench.start_broker()
    worker = bench.start_worker()
    wait_for(lambda: is_consuming(bench), bench.log("worker"))
    with redis.Redis(port=bench.port) as admin:
        admin.execute_command(*refuse)
        admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_for(lambda: has_reason(bench, reason), lambda: bench.log("worker"))
        admin.execute_command(*allow)
    bench.dispatch()
    wait_for(lambda: len(server.claims) == 1, lambda: bench.log("worker"))
    assert worker.poll() is None
    reasons = list_reasons(bench)
    assert len(reasons) == len(set(reasons)), "each reason is logged once"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("reason", ["read only", "WRONGTYPE", "password|Authentication"])
def test_a_worker_starts_beside_a_broker_that_refuses(
    bench: WorkerBench, server: ScriptedServer, reason: str
) -> None:
    refuse, allow = REFUSALS[reason]
    bench.start_broker()
    with redis.Redis(port=bench.port) as admin:
        admin.execute_command(*refuse)
        bench.start_worker()
        wait_for(lambda: has_reason(bench, reason), lambda: bench.log("worker"))
        admin.execute_command(*allow)
    bench.dispatch()
    wait_for(lambda: len(server.claims) == 1, lambda: bench.log("worker"))


def test_a_worker_beside_a_cluster_waits_and_says_why(bench: WorkerBench) -> None:
    """Its queue and the table of its binding are on different nodes: Celery cannot use one."""
    # Without a port of its own, the nodes' port is 10,000 higher, which may be more than there are.
    bench.start_broker("--cluster-enabled", "yes", "--cluster-port", str(find_free_port()))
    worker = bench.start_worker()
    wait_for(lambda: has_reason(bench, "not served|is down"), lambda: bench.log("worker"))
    with redis.Redis(port=bench.port) as admin:
        admin.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
    wait_for(lambda: has_reason(bench, "same slot"), lambda: bench.log("worker"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0


def test_a_worker_waits_while_the_broker_loads_its_data(
    bench: WorkerBench, server: ScriptedServer
) -> None:
    bench.start_broker(
        *("--enable-debug-command", "local"), *("--loading-process-events-interval-bytes", "1024")
    )
    with redis.Redis(port=bench.port) as admin, redis.Redis(port=bench.port) as loader:
        admin.execute_command("DEBUG", "POPULATE", "100000")
        admin.config_set("key-load-delay", 10_000)  # In microseconds: it loads until told to stop.
        loading = threading.Thread(target=loader.execute_command, args=("DEBUG", "RELOAD"))
        loading.start()
        bench.start_worker()
        wait_for(lambda: has_reason(bench, "loading"), lambda: bench.log("worker"))
        admin.config_set("key-load-delay", 0)
        loading.join()
    bench.dispatch()
    wait_for(lambda: len(server.claims) == 1, lambda: bench.log("worker"))


def test_a_signal_ends_a_worker_whose_broker_refuses(bench: WorkerBench) -> None:
    bench.start_broker()
    with redis.Redis(port=bench.port) as admin:
        admin.execute_command(*REFUSALS["read only"][0])
    worker = bench.start_worker()
    wait_for(lambda: has_reason(bench, "read only"), lambda: bench.log("worker"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0


def list_reasons(bench: WorkerBench) -> list[str]:
    lines = [line for line in bench.log("worker").splitlines() if "waits_for_broker" in line]
    return [json.loads(line)["reason"] for line in lines]


def has_reason(bench: WorkerBench, part: str) -> bool:
    return any(word in reason for reason in list_reasons(bench) for word in part.split("|"))


def is_consuming(bench: WorkerBench) -> bool:
    with redis.Redis(port=bench.port) as admin:
        return any(client["cmd"] == "brpop" for client in admin.client_list())
