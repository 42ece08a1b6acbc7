"""Celery's consumer of a worker, which waits for a broker that is unreachable or refuses."""

import logging
import time
import warnings
from typing import Any, Final

from celery.exceptions import CPendingDeprecationWarning
from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown

from palestra.addresses import mask_password
from palestra.backoff import Backoff
from workers.ipc.json_log import get_logger

_MAX_WAIT_SECONDS: Final = 5.0
_TICK_SECONDS: Final = 0.1
_CALM_SECONDS: Final = 60.0
"""Time without a failure after which the same reason is logged again."""


class PatientConsumer(Consumer):  # type: ignore[misc]
    """Reconnects after each failure and each refusal of the broker, until a signal stops it.

    The broker may be unreachable, loading, read-only, out of memory, or refuse the password or a
    command. Each reason is logged once while it lasts.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._backoff = Backoff(longest=_MAX_WAIT_SECONDS)
        self._reasons: set[str] = set()
        self._failed_at = -_CALM_SECONDS
        # Celery logs several lines at each failure.
        logging.getLogger("celery.worker.consumer.consumer").setLevel(logging.CRITICAL + 1)

    def ensure_connected(self, conn: Any) -> Any:
        """Connects, waiting until the broker accepts the connection."""
        reasons: set[str] = set()
        return conn.ensure_connection(
            lambda error, _: _log_once(error, reasons),
            interval_start=1,
            interval_step=1,
            interval_max=_MAX_WAIT_SECONDS,
            callback=maybe_shutdown,
        )

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        """Waits before the next connection."""
        self._wait_after(exc)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Closes the connection, and waits before the next one."""
        with warnings.catch_warnings():
            # Of tasks with late acknowledgement, of which there are none.
            warnings.simplefilter("ignore", CPendingDeprecationWarning)
            super().on_connection_error_after_connected(exc)
        self._wait_after(exc)

    def _wait_after(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._failed_at >= _CALM_SECONDS:
            self._reasons.clear()
            self._backoff.reset()
        self._failed_at = now
        _log_once(error, self._reasons)
        end = now + self._backoff.compute_next_wait()
        while time.monotonic() < end:
            maybe_shutdown()
            time.sleep(_TICK_SECONDS)


def _log_once(error: Exception, reasons: set[str]) -> None:
    reason = mask_password(f"{type(error).__name__}: {error}")
    if reason not in reasons:
        reasons.add(reason)
        get_logger().warning("worker.waits_for_broker", reason=reason)
