"""The worker's connection to the broker: address, Celery settings and transport.

The transport tolerates any content of the queue.
"""

from collections.abc import Callable
from queue import Empty
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import kombu.transport
from kombu.transport import redis, virtual

from workers.ipc.json_log import get_logger

_TRANSPORT: Final = f"{__name__}:TolerantRedisTransport"

SETTINGS: Final[dict[str, object]] = {
    # The queue holds only dispatch messages, as JSON.
    "task_serializer": "json",
    "accept_content": ["json"],
    "result_backend": None,
    "task_ignore_result": True,
    "task_create_missing_queues": True,
    # Messages are acknowledged on arrival. The dispatcher sends a lost one again.
    "task_acks_late": False,
    "task_reject_on_worker_lost": False,
    "task_track_started": False,
    "worker_disable_prefetch": True,
    "worker_prefetch_multiplier": 1,
    "worker_max_tasks_per_child": 50,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    # Celery's events are off: workers report with heartbeats to the server.
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "task_send_sent_event": False,
    # No time limits of Celery: the supervisor enforces an attempt's limits.
    "task_time_limit": None,
    "task_soft_time_limit": None,
    "worker_soft_shutdown_timeout": 15.0,
    # Reconnect without limit, and detect half-open connections.
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    # The same for a broker that answers with an error: read-only, out of memory, loading, refusing.
    "broker_channel_error_retry": True,
    "broker_connection_timeout": 5.0,
    "broker_transport_options": {
        "visibility_timeout": 3_600,
        "socket_timeout": 30.0,
        "socket_connect_timeout": 5.0,
        "socket_keepalive": True,
        "health_check_interval": 25,
    },
    "worker_consumer": "workers.host.consumer:PatientConsumer",
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "timezone": "UTC",
}


class MemoryQoS(virtual.QoS):
    """Keeps unacknowledged messages only in the memory of this process.

    Kombu's own class stores them in the broker, and every consumer restores expired ones to the
    queue with a script. Dispatch messages need not be restored, since the dispatcher sends them
    again. So a worker needs no permission to write to a queue or to run scripts.
    """

    # The base class's signature.
    def reject(self, delivery_tag: object, requeue: bool = False) -> None:  # noqa: ARG002
        """Drops a message and never requeues it."""
        super().reject(delivery_tag, requeue=False)  # type: ignore[no-untyped-call]


class Channel(redis.Channel):
    """A channel that drops invalid messages and never requeues a message.

    Kombu's channel stops the consumer at an invalid message.
    """

    QoS = MemoryQoS  # type: ignore[assignment]  # the channel uses what every QoS has
    do_restore = False

    on_malformed: Callable[[], None] = staticmethod(lambda: None)
    """Called for each message that was dropped."""

    def _brpop_read(self, **options: object) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            get_logger().warning("dispatch.malformed", reason=type(error).__name__)
            self.on_malformed()
            raise Empty from None


class TolerantRedisTransport(redis.Transport):
    """Kombu's Redis transport with `Channel` as its channel."""

    Channel = Channel


def install_transport(on_malformed: Callable[[], None] | None = None) -> None:
    """Makes kombu use `TolerantRedisTransport` for Redis addresses in this process.

    Args:
        on_malformed: Called for each message that was dropped because it is invalid.
    """
    if on_malformed is not None:
        Channel.on_malformed = staticmethod(on_malformed)
    kombu.transport.TRANSPORT_ALIASES.update(redis=_TRANSPORT, rediss=_TRANSPORT)


def choose_broker(option: str | None, answer: str) -> str:
    """Returns the address of the broker.

    Args:
        option: The address of the command line. Without a password it gets the user and password
            of the server's answer.
        answer: The address that the server told.
    """
    if option is None:
        return answer
    location = urlsplit(option)
    user, at, _ = urlsplit(answer).netloc.rpartition("@")
    if location.password is not None or not location.netloc or not at:
        return option
    host = location.netloc.rpartition("@")[2]
    return urlunsplit(location._replace(netloc=f"{user}@{host}"))
