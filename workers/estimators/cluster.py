"""The server of a cluster of training processes, and their shared global step.

The server is a key-value store of `torch.distributed` (`TCPStore`), as torchrun's rendezvous uses.
Each process trains a model of its own. The processes share only the global step, which can be used
to start the workers one after the other.
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
    """The key-value server of one task of a cluster.

    Args:
        config: Configuration of the task, which defines the address.

    Raises:
        ValueError: If the configuration of the cluster is incomplete.
    """

    def __init__(self, config: RunConfig) -> None:
        config.require_cluster()
        self._address = address_of(process_address(config))
        self._store: Any = None
        self._stopped = threading.Event()

    @property
    def port(self) -> int:
        """Port of the server; before `start`, the configured port."""
        return self._address[1] if self._store is None else int(self._store.port)

    def start(self) -> None:
        """Starts to listen.

        Raises:
            RuntimeError: If the address is in use.
        """
        host, port = self._address
        self._store = TCPStore(
            host, port, is_master=True, wait_for_workers=False, timeout=CONNECT_TIMEOUT
        )
        _log.info("cluster.server_started", host=host, port=self.port)

    def join(self) -> None:
        """Blocks until `stop` is called by a signal handler or another thread."""
        while not self._stopped.wait(_POLL_SECONDS):
            pass
        self._store = None
        _log.info("cluster.server_stopped")

    def stop(self) -> None:
        """Makes `join` return."""
        self._stopped.set()


class SharedStep:
    """The number of updates of all processes of a cluster, stored on the server.

    Args:
        config: Configuration whose `master` is the address of the server.

    Raises:
        DistStoreError: If the server cannot be reached within a minute.
    """

    def __init__(self, config: RunConfig) -> None:
        host, port = address_of(config.master or "")
        self._store: Any = TCPStore(
            host, port, is_master=False, wait_for_workers=False, timeout=CONNECT_TIMEOUT
        )

    def add(self, updates: int) -> int:
        """Adds updates and returns the new sum."""
        return int(self._store.add(SHARED_STEP, updates))

    def read(self) -> int:
        """Returns the sum of the updates of all processes."""
        return self.add(0)


class SharedStepHook(SessionRunHook):
    """Adds the updates of this process to the shared global step.

    If the server cannot be reached any more, the training continues without it.

    Args:
        add: Adds a number of updates to the shared global step.
    """

    def __init__(self, add: Callable[[int], int]) -> None:
        self._add: Callable[[int], int] | None = add

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Adds 1 to the shared global step, if the run made an update."""
        del run_context
        if not run_values.has_learned or self._add is None:
            return
        try:
            self._add(1)
        except RuntimeError as error:
            self._add = None
            _log.warning("cluster.server_lost", error=str(error))


def process_address(config: RunConfig) -> str:
    """Returns the address of this process in its cluster."""
    return config.cluster[config.task_type or ""][config.task_id or 0]


def address_of(text: str) -> tuple[str, int]:
    """Returns host and port of `host:port`, which may begin with a scheme such as `grpc://`.

    Raises:
        ValueError: If the text is not an address.
    """
    host, colon, port = text.rpartition("://")[2].rpartition(":")
    if not (colon and host and port.isdecimal()):
        raise ValueError(f"{text!r} is no address: write host:port")
    return host, int(port)
