"""Ends tasks that run in the background."""

import asyncio
from collections.abc import Collection
from typing import Any, Final

_REPEAT_SECONDS: Final = 5.0
"""More than a task takes to end in order: the dispatcher, for example, releases its lease."""


async def cancel_all(
    tasks: Collection[asyncio.Task[Any]], *, repeat_seconds: float = _REPEAT_SECONDS
) -> None:
    """Cancels tasks and waits until all have ended.

    A task may go on after a cancellation: `asyncio.wait_for` of Python 3.11 drops one that
    coincides with its result, and an error that is raised while a task ends replaces it. So the
    cancellation is repeated.

    Args:
        tasks: The tasks; those that have ended stay as they are.
        repeat_seconds: Time after which tasks that go on are cancelled again.
    """
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=repeat_seconds)
