"""The worker's connection to the broker: address, Celery's settings, transport.

The transport survives any content of the queue.
"""

import re
from collections.abc import Callable
from queue import Empty
from typing import Any, Final

import kombu.transport
from kombu.transport import redis, virtual

from workers.ipc.json_log import get_logger

_ALIASES: Final = {
    "valkey://": "redis://",
    "valkeys://": "rediss://",
    "valkey+socket://": "redis+socket://",
}
_TRANSPORT: Final = f"{__name__}:TolerantRedisTransport"
_SECRET: Final = re.compile(r"(?<=://)([^@/]*):[^@/]*@")

SETTINGS: Final[dict[str, object]] = {
    # What crosses the queue is JSON, and only dispatch messages.
    "task_serializer": "json",
    "accept_content": ["json"],
    "result_backend": None,
    "task_ignore_result": True,
    "task_create_missing_queues": True,
    # A dispatch message is acknowledged when it arrives; the database decides whether a job waits.
    "task_acks_late": False,
    "task_reject_on_worker_lost": False,
    "task_track_started": False,
    "worker_disable_prefetch": True,
    "worker_prefetch_multiplier": 1,
    "worker_max_tasks_per_child": 50,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    # Nothing rides on publish and subscribe: liveness is our own heartbeat.
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "task_send_sent_event": False,
    # No time limits: limits of a training are its supervisor's.
    "task_time_limit": None,
    "task_soft_time_limit": None,
    "worker_soft_shutdown_timeout": 15.0,
    # Reconnects for ever, and notices a half-open connection.
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "broker_connection_timeout": 5.0,
    "broker_transport_options": {
        "visibility_timeout": 3_600,
        "socket_timeout": 30.0,
        "socket_connect_timeout": 5.0,
        "socket_keepalive": True,
        "health_check_interval": 25,
    },
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "timezone": "UTC",
}


class MemoryQoS(virtual.QoS):
    """Keeps the messages that are not acknowledged yet in this process alone.

    Kombu's keeps them in the broker, and has every consumer put those of others back after a while,
    for which it runs a script. A dispatch message need not be put back: the dispatcher sends it
    again. So a worker needs no right to write to a queue or to run scripts.
    """

    # The base class's signature.
    def reject(self, delivery_tag: object, requeue: bool = False) -> None:  # noqa: ARG002
        """Forgets a message."""
        super().reject(delivery_tag, requeue=False)  # type: ignore[no-untyped-call]


class Channel(redis.Channel):
    """A channel that drops invalid messages and requeues nothing.

    kombu's channel would end the consumer.
    """

    QoS = MemoryQoS  # type: ignore[assignment]  # the channel uses what every QoS has
    do_restore = False

    on_malformed: Callable[[], None] = staticmethod(lambda: None)
    """Told of each one dropped."""

    def _brpop_read(self, **options: object) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            get_logger().warning("dispatch.malformed", reason=type(error).__name__)
            self.on_malformed()
            raise Empty from None


class TolerantRedisTransport(redis.Transport):
    """Kombu's Redis transport with our channel."""

    Channel = Channel


def install_transport(on_malformed: Callable[[], None] | None = None) -> None:
    """Makes kombu use our transport for Redis addresses in this process.

    Args:
        on_malformed: Told of each message that was dropped because it is none.
    """
    if on_malformed is not None:
        Channel.on_malformed = staticmethod(on_malformed)
    kombu.transport.TRANSPORT_ALIASES.update(redis=_TRANSPORT, rediss=_TRANSPORT)


def real_url(url: str) -> str:
    """Returns an address that kombu understands: Valkey speaks Redis."""
    return next(
        (
            real + url.removeprefix(alias)
            for alias, real in _ALIASES.items()
            if url.startswith(alias)
        ),
        url,
    )


def masked(url: str) -> str:
    """Returns an address without its password, for logs."""
    return _SECRET.sub(r"\1:***@", url)
