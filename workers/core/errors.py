"""Errors of the trainer.

Only `workers.trainer_process` converts them to a report; stop and pause are outcomes, not errors.
"""

import pickle
from typing import ClassVar


class WorkerError(Exception):
    """Base class of errors with a known cause, which the attempt's report states."""

    is_retryable: ClassVar[bool] = False
    """Whether another attempt may succeed without any change."""


class DefinitionError(WorkerError):
    """This worker cannot execute the definition or the work order."""


class PartNotFoundError(WorkerError):
    """A part that the definition names cannot be imported or is not registered here."""


class CodeChangedError(WorkerError):
    """The installed code differs from the code of the experiment."""


class EnvironmentFailedError(WorkerError):
    """The environment raised, or broke the Gymnasium contract."""


class NumericalFailureError(WorkerError):
    """The training diverged: its loss is not finite."""


class SnapshotUnreadableError(WorkerError):
    """A snapshot is incomplete, of another run or definition, of a newer format or invalid."""

    is_retryable: ClassVar[bool] = True


class InputExhaustedError(WorkerError):
    """A finite input is exhausted. The engine catches this and ends the run."""


def unwrapped_error(error: BaseException) -> BaseException:
    """Returns the environment's own exception, with the notes that were added to its wrapper.

    Every error other than EnvironmentFailedError is returned unchanged.
    """
    inner = error
    while isinstance(inner, EnvironmentFailedError) and inner.__cause__ is not None:
        inner = inner.__cause__
    for note in getattr(error, "__notes__", ()):
        if inner is not error:
            inner.add_note(note)
    return inner


def pickle_error(error: BaseException) -> bytes | None:
    """Pickles an exception.

    Returns `None` if it cannot be pickled or unpickling does not return the same type.
    """
    try:
        packed = pickle.dumps(error)
        has_same_type = type(pickle.loads(packed)) is type(error)  # noqa: S301 - packed the line before
    except Exception:  # noqa: BLE001 - pickling runs any code
        return None
    return packed if has_same_type else None
