"""Notifies other server processes of changed topics; carries no data.

A lost notification does no harm, since readers also poll.
"""

from app.bus.base import Bus, Subscription
from app.bus.memory import MemoryBus
from app.bus.redis import RedisBus
from app.settings import Settings

__all__ = ["Bus", "MemoryBus", "RedisBus", "Subscription", "make_bus", "publish_all"]


def make_bus(settings: Settings) -> Bus:
    """Creates the notification bus that the settings select."""
    return (
        MemoryBus() if settings.bus_url is None else RedisBus(settings.bus_url.get_secret_value())
    )


def publish_all(bus: Bus, topics: frozenset[str]) -> None:
    """Publishes the topics of a committed transaction."""
    for topic in sorted(topics):
        bus.publish(topic)
