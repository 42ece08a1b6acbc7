"""The server of a cluster of training processes, and their shared global step.

The server is a key-value store of `torch.distributed` (`TCPStore`); torchrun's rendezvous speaks to
the same kind. Each process trains a model of its own: what they share is the global step, by which
workers can be started one after the other.
"""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import structlog
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from workers.estimators.run_config import RunConfig
from workers.supervised.run_session import RunContext, RunValues, SessionRunHook

SHARED_STEP: Final = "palestra/global_step"
CONNECT_TIMEOUT: Final = timedelta(seconds=60)
_POLL_SECONDS: Final = 0.5

_log = structlog.get_logger()


class Server:
    """The server of one task of a cluster.

    Args:
        config: Whose task.

    Raises:
        ValueError: If something is missing in the configuration.
    """

    def __init__(self, config: RunConfig) -> None:
        config.require_cluster()
        self._address = address_of(own_address(config))
        self._store: Any = None
        self._stopped = threading.Event()

    @property
    def port(self) -> int:
        """Where it listens; known once it was started."""
        return self._address[1] if self._store is None else int(self._store.port)

    def start(self) -> None:
        """Begins to listen.

        Raises:
            RuntimeError: If the address is taken.
        """
        host, port = self._address
        self._store = TCPStore(
            host, port, is_master=True, wait_for_workers=False, timeout=CONNECT_TIMEOUT
        )
        _log.info("cluster.server_started", host=host, port=self.port)

    def join(self) -> None:
        """Blocks until `stop` is called, from a signal's handler or another thread."""
        while not self._stopped.wait(_POLL_SECONDS):
            pass
        self._store = None
        _log.info("cluster.server_stopped")

    def stop(self) -> None:
        """Ends `join`."""
        self._stopped.set()


class SharedStep:
    """The updates of all processes of a cluster together.

    Args:
        config: Names the server.

    Raises:
        DistStoreError: If the server cannot be reached within a minute.
    """

    def __init__(self, config: RunConfig) -> None:
        host, port = address_of(config.master or "")
        self._store: Any = TCPStore(
            host, port, is_master=False, wait_for_workers=False, timeout=CONNECT_TIMEOUT
        )

    def add(self, updates: int) -> int:
        """Counts updates and returns the new sum."""
        return int(self._store.add(SHARED_STEP, updates))

    def read(self) -> int:
        """Returns the sum."""
        return self.add(0)


class SharedStepHook(SessionRunHook):
    """Adds the updates of this process to the shared global step.

    If the server is gone, the training continues without it.

    Args:
        add: Counts so many updates.
    """

    def __init__(self, add: Callable[[int], int]) -> None:
        self._add: Callable[[int], int] | None = add

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Counts one."""
        del run_context
        if not run_values.learned or self._add is None:
            return
        try:
            self._add(1)
        except RuntimeError as error:
            self._add = None
            _log.warning("cluster.server_lost", error=str(error))


def own_address(config: RunConfig) -> str:
    """Returns the address of this process in its cluster."""
    return config.cluster[config.task_type or ""][config.task_id or 0]


def address_of(text: str) -> tuple[str, int]:
    """Returns host and port of `host:port`, which may begin with a scheme such as `grpc://`.

    Raises:
        ValueError: If it is no address.
    """
    host, colon, port = text.rpartition("://")[2].rpartition(":")
    if not (colon and host and port.isdecimal()):
        raise ValueError(f"{text!r} is no address: write host:port")
    return host, int(port)
