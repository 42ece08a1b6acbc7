"""Clock and cluster of an experiment."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from workers.estimators.cluster import Server, SharedStep, process_address
from workers.estimators.run_config import RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentContext:
    """Functions with which an experiment reads the time and reaches its cluster.

    Tests replace them.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    make_server: Callable[[RunConfig], Server] = Server
    make_counter: Callable[[RunConfig], SharedStep] = SharedStep

    def join(self, config: RunConfig, stack: ExitStack) -> SharedStep | None:
        """Connects to the shared global step of the cluster; returns `None` without a cluster.

        The process at the master's address also starts the server of the global step.

        Args:
            config: Configuration of this process.
            stack: Exit stack with which the server is stopped.

        Raises:
            ValueError: If the configuration of a cluster is incomplete.
        """
        if not config.is_distributed:
            return None
        config.require_cluster()
        if process_address(config) == config.master:
            server = self.make_server(config)
            server.start()
            stack.callback(server.stop)
        return self.make_counter(config)
