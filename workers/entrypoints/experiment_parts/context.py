"""Clock and cluster of an experiment."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from workers.estimators.cluster import Server, SharedStep, own_address
from workers.estimators.run_config import RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentContext:
    """Clock and cluster of an experiment, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    make_server: Callable[[RunConfig], Server] = Server
    make_counter: Callable[[RunConfig], SharedStep] = SharedStep

    def join(self, config: RunConfig, stack: ExitStack) -> SharedStep | None:
        """Returns the shared global step of the cluster, `None` without a cluster.

        The process at the master's address also serves it.

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
