"""The bus between server processes, over Redis or Valkey publish/subscribe.

Each of its two connections has one owner task, which alone sends on it and reads from it. No
request handler ever awaits a command on them, so no cancelled request can leave a connection out
of step (CVE-2023-28858).
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.bus.memory import MemoryBus
from app.cancellation import cancel_all
from palestra.backoff import Backoff

_log = structlog.get_logger("palestra.bus")

CHANNEL: Final = "palestra.bells"
_FIRST_WAIT: Final = 0.1
_MAX_WAIT_SECONDS: Final = 5.0
_TIMEOUT: Final = 5.0
_LISTEN_SECONDS: Final = 10.0
_CANCEL_SECONDS: Final = 0.05
_Work = Callable[[Redis], Awaitable[None]]
_FAILURES: Final = (RedisError, OSError, TimeoutError)


class RedisBus(MemoryBus):
    """Notifies this process at once, and others over a Redis channel; see `app.bus.base.Bus`.

    Args:
        url: `redis://`, `rediss://` or `unix://` address.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._origin = secrets.token_hex(8)
        self._outgoing: set[str] = set()
        self._wake = asyncio.Event()
        self._listening = asyncio.Event()

    def publish(self, topic: str) -> None:
        """Notifies this process now, and others as soon as Redis can be reached."""
        super().publish(topic)
        self._outgoing.add(topic)
        self._wake.set()

    async def run(self) -> None:
        """Delivers notifications until cancelled."""
        owners = [
            asyncio.create_task(self._run_with_reconnects(self._send, "send")),
            asyncio.create_task(self._run_with_reconnects(self._listen, "listen")),
        ]
        try:
            await asyncio.wait(owners)
        finally:
            # redis-py often drops a cancellation, by `asyncio.wait_for`.
            await cancel_all(owners, repeat_seconds=_CANCEL_SECONDS)

    async def wait_until_connected(self, seconds: float) -> bool:
        """Waits at most `seconds` for the connection; returns whether notifications can arrive."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._listening.wait()
        return self._listening.is_set()

    async def _run_with_reconnects(self, work: _Work, name: str) -> None:
        """Runs `work` on a connection, and again on a new one after each failure."""
        backoff = Backoff(longest=_MAX_WAIT_SECONDS, first=_FIRST_WAIT)
        while True:
            try:
                async with self._connect() as connection:
                    await connection.ping()
                    backoff.reset()
                    await work(connection)
            except _FAILURES as error:
                _log.warning("bus.disconnected", role=name, error=type(error).__name__)
            await asyncio.sleep(backoff.compute_next_wait())

    def _connect(self) -> Redis:
        keepalive = {} if self._url.startswith("unix:") else {"socket_keepalive": True}
        return Redis.from_url(
            self._url,
            single_connection_client=True,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            **keepalive,
        )

    async def _send(self, connection: Redis) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._outgoing:
                topic = self._outgoing.pop()
                try:
                    await connection.publish(CHANNEL, f"{self._origin}:{topic}")
                except _FAILURES:
                    self._outgoing.add(topic)
                    self._wake.set()
                    raise

    async def _listen(self, connection: Redis) -> None:
        channel = connection.pubsub(ignore_subscribe_messages=True)
        try:
            await channel.subscribe(CHANNEL)
            self._listening.set()
            self._notify_all()
            while True:
                message = await channel.get_message(timeout=_LISTEN_SECONDS)
                if message is None:
                    await channel.ping()
                elif message["type"] == "message":
                    self._receive(message["data"].decode("utf-8", "replace"))
        finally:
            self._listening.clear()
            await channel.aclose()  # type: ignore[no-untyped-call]

    def _receive(self, message: str) -> None:
        origin, _, topic = message.partition(":")
        if origin != self._origin:
            super().publish(topic)

    def _notify_all(self) -> None:
        """Notifies the subscribers of all topics: a notification may have been lost meanwhile."""
        for subscription in tuple(self._subscriptions):
            for topic in subscription.topics:
                subscription.notify(topic)
