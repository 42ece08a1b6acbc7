"""Waits for conditions, the only way in which tests wait for what others do.

A wait ends as soon as its condition holds. How long it may last says nothing about the product:
durations are measured by `benchmarks/`.
"""

import asyncio
import os
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

PATIENCE_SECONDS: Final = float(os.environ.get("PALESTRA_TEST_PATIENCE_SECONDS", "180"))
"""Seconds after which a wait has failed, also on a machine that does other work."""


def wait_for(
    question: Callable[[], Value | None],
    what: str | Callable[[], str],
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Value:
    """Calls `question` until its result is truthy, and returns the result.

    Args:
        question: Asked again and again, at first after 5 ms, later every 0.1 s.
        what: What is waited for, in the words of the error; a function is called only then.
        patience_seconds: Tests leave it as it is, benchmarks may have more.

    Raises:
        AssertionError: If the result is not truthy within `patience_seconds`.
    """
    deadline = time.monotonic() + patience_seconds
    pause_seconds = 0.005
    while not (answer := question()):
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {patience_seconds} s: {told}")
        # A question to a server takes processor time, which a training needs.
        time.sleep(pause_seconds)
        pause_seconds = min(0.1, 1.5 * pause_seconds)
    return answer


async def cancel_after(task: asyncio.Task[Any], steps: int) -> None:
    """Cancels a task after a number of steps of the event loop, and waits until it has ended."""
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    ended, _ = await asyncio.wait([task], timeout=PATIENCE_SECONDS)
    assert ended, f"not within {PATIENCE_SECONDS} s: it ends, cancelled after {steps} steps"


async def until(question: Callable[[], object], what: str = "the condition holds") -> None:
    """Waits until the answer to a question about this process is truthy.

    Args:
        question: A function or a coroutine function.
        what: What is waited for, in the words of the error.

    Raises:
        AssertionError: If it is not within `PATIENCE_SECONDS`.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (await answer if isawaitable(answer := question()) else answer):
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}"
        await asyncio.sleep(0.005)
