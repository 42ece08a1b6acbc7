"""What surrounds an experiment: time, and the other processes of its cluster."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from workers.estimators.cluster import Server, SharedStep, own_address
from workers.estimators.run_config import RunConfig


class ServerLike(Protocol):
    """What `run_std_server` starts."""

    def start(self) -> None:
        """Begins to listen."""
        ...

    def join(self) -> None:
        """Blocks until it is stopped."""
        ...

    def stop(self) -> None:
        """Ends `join`."""
        ...


class StepCounter(Protocol):
    """Updates of all processes of a cluster."""

    def add(self, updates: int) -> int:
        """Counts."""
        ...

    def read(self) -> int:
        """Returns the sum."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Time and cluster of an experiment; a test replaces them."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    make_server: Callable[[RunConfig], ServerLike] = Server
    make_counter: Callable[[RunConfig], StepCounter] = SharedStep

    def join(self, config: RunConfig, stack: ExitStack) -> StepCounter | None:
        """Returns the shared count of a cluster, `None` without one.

        The process whose address is the master's serves it meanwhile.

        Args:
            config: Of this process.
            stack: Stops the server.

        Raises:
            ValueError: If something is missing in the configuration of a cluster.
        """
        if not config.is_distributed:
            return None
        config.require_cluster()
        if own_address(config) == config.master:
            server = self.make_server(config)
            server.start()
            stack.callback(server.stop)
        return self.make_counter(config)
