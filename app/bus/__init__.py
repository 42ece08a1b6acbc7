"""Live fan-out between server processes: notifications of changed topics, never data.

Losing one loses nothing, readers look by themselves.
"""

from app.bus.base import Bus, Subscription
from app.bus.memory import MemoryBus
from app.bus.redis import RedisBus

__all__ = ["Bus", "MemoryBus", "RedisBus", "Subscription"]
