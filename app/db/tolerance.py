"""Work on several runs, of which one that fails must not keep back the others."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from app.db import faults


@contextmanager
def tolerate(log: Any, failed: str, **subject: object) -> Iterator[None]:
    """Logs that a part of some work failed, so that the other parts are done.

    A failure of the database itself is raised: the others would fail, too.

    Args:
        log: The structlog logger.
        failed: Event that is logged.
        **subject: What the part is about.
    """
    try:
        yield
    except Exception as error:
        if faults.is_of_database(error):
            raise
        log.exception(failed, **subject)


async def do_together(
    work: Callable[[Sequence[str]], Awaitable[int]],
    run_ids: Sequence[str],
    *,
    log: Any,
    failed: str,
) -> int:
    """Does work for runs together, or for each by itself if that fails.

    Args:
        work: Takes some runs; returns what was done as a number.
        run_ids: The runs.
        log: See `tolerate`.
        failed: See `tolerate`.

    Returns:
        The sum of what was done.
    """
    if len(run_ids) > 1:
        try:
            return await work(run_ids)
        except Exception as error:
            if faults.is_of_database(error):
                raise
    total = 0
    for run_id in run_ids:
        with tolerate(log, failed, run_id=run_id):
            total += await work([run_id])
    return total
