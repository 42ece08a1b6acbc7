"""Maps an exception to the failure that a user sees and the cause that decides a retry."""

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch

from palestra.contract.states import Cause
from palestra.contract.work_order import Failure
from workers.core.errors import (
    CodeChangedError,
    EnvironmentFailedError,
    NumericalFailureError,
    PartNotFoundError,
    WorkerError,
)
from workers.ipc.bounded_text import shorten
from workers.ipc.full_disk import ADVICE, is_full_error


def describe_failure(error: BaseException, directory: Path | None = None) -> tuple[Cause, Failure]:
    """Returns the cause of an end by exception, and the failure that the user sees.

    Args:
        error: The exception that ended the attempt.
        directory: The attempt's directory.
    """
    cause = _cause_of(error, directory)
    text = "".join(traceback.format_exception(error))
    failure = Failure(
        message=shorten(_message(cause, error), 4_000),
        exception=type(error).__name__[:200],
        traceback=shorten(text, 65_536),
    )
    return cause, failure


def _cause_of(error: BaseException, directory: Path | None) -> Cause:
    if any(
        is_full_error(one, directory) for one in _exception_chain(error, includes_contexts=True)
    ):
        return Cause.DISK_FULL
    for one in _exception_chain(error):
        if isinstance(one, torch.OutOfMemoryError):
            return Cause.CUDA_OUT_OF_MEMORY
        if isinstance(one, MemoryError):
            return Cause.HOST_OUT_OF_MEMORY
        if isinstance(one, NumericalFailureError):
            return Cause.DIVERGED
    if isinstance(error, CodeChangedError):
        return Cause.CODE_CHANGED
    return (
        Cause.IMPORT_ERROR
        if isinstance(error, ImportError | PartNotFoundError)
        else Cause.USER_EXCEPTION
    )


def _exception_chain(
    error: BaseException, *, includes_contexts: bool = False
) -> Iterator[BaseException]:
    """Yields an exception and its causes.

    On request also the exceptions that were being handled when each was raised.
    """
    one: BaseException | None = error
    while one is not None:
        yield one
        context = one.__context__ if includes_contexts and not one.__suppress_context__ else None
        one = one.__cause__ or context


_ADVICE: Final = {
    Cause.CUDA_OUT_OF_MEMORY: (
        "The GPU ran out of memory: lower agent.batch_size or agent.buffer_size, or ask for a "
        "larger GPU."
    ),
    Cause.HOST_OUT_OF_MEMORY: (
        "The trainer ran out of memory: lower agent.buffer_size or env.num_envs."
    ),
    Cause.DISK_FULL: ADVICE,
}


def _message(cause: Cause, error: BaseException) -> str:
    what = str(error) or type(error).__name__
    if cause in _ADVICE:
        return f"{_ADVICE[cause]} ({what})"
    if isinstance(error, EnvironmentFailedError):
        return f"The environment failed: {what}"
    if isinstance(error, SystemExit):
        return f"The code called sys.exit({error.code!r}) instead of returning."
    return what if isinstance(error, WorkerError) else f"{type(error).__name__}: {what}"
