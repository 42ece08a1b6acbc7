"""Waits for what another task of the event loop does."""

import asyncio
from collections.abc import Callable


async def until(question: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits until the answer to a question is true.

    Raises:
        TimeoutError: If it is not within `seconds`.
    """
    async with asyncio.timeout(seconds):
        while not question():
            await asyncio.sleep(0.01)
