"""Notifies other server processes of changed topics; carries no data.

A lost notification does no harm, since readers also poll.
"""

from app.bus.base import Bus, Subscription
from app.bus.memory import MemoryBus
from app.bus.redis import RedisBus

__all__ = ["Bus", "MemoryBus", "RedisBus", "Subscription"]
