"""Work that a daemon repeats."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def run_periodically(
    work: Callable[[], Awaitable[object]], seconds: float, *, log: Any, failed: str
) -> None:
    """Repeats `work` until it is cancelled.

    Args:
        work: One round of the work.
        seconds: Pause between the end of a round and the next one.
        log: The daemon's structlog logger.
        failed: Event that is logged when a round fails; the next round is run all the same.
    """
    while True:
        try:
            await work()
        # A failure must not end the daemon: the next round reads the database anew.
        except Exception:
            log.exception(failed)
        await asyncio.sleep(seconds)
