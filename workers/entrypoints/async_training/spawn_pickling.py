"""Pickling of the caller's functions and objects for new processes.

They are checked before a process starts, and unpickled inside the process's main function, so that
a failure can be reported to the parent.

Tensors are copied, except tensors in shared memory, which all processes then share. torch is not
imported here: if it is not loaded, no object can hold a tensor.
"""

import io
import pickle
import sys
from multiprocessing import context
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final

_REMEDY: Final = (
    "use a function or class of a module, or functools.partial of one, "
    "that holds nothing bound to this process"
)


class PickledValue:
    """Wraps a value that is sent to a new process and unpickled there by `unpack`.

    In a forked process, `unpack` returns the inherited value.

    Args:
        value: Any value that can be pickled while a process is being started.
    """

    def __init__(self, value: object) -> None:
        self._value = value
        self._packed: bytes | None = None

    def unpack(self) -> Any:
        """Returns the value.

        Raises:
            Exception: Any exception of unpickling the value.
        """
        if self._packed is not None:
            # Packed by the process that started this one.
            self._value, self._packed = pickle.loads(self._packed), None  # noqa: S301
        return self._value

    def __getstate__(self) -> bytes:
        return _pack(self._value)

    def __setstate__(self, packed: bytes) -> None:
        self._packed = packed


def pickling_error(value: object) -> BaseException | None:
    """Returns the exception of pickling a value for a spawned process; `None` if there is none."""
    rehearsal: Any = _PicklingPopen()
    context.set_spawning_popen(rehearsal)
    try:
        _pack(value)
    except Exception as error:  # noqa: BLE001 - pickling runs any code
        return error
    finally:
        context.set_spawning_popen(None)
    return None


def check_picklable(name: str, value: object, remedy: str = _REMEDY) -> None:
    """Raises TypeError if the value of the parameter `name` cannot be sent to a spawned process.

    The message ends with `remedy`, which names the alternative.
    """
    error = pickling_error(value)
    if error is not None:
        raise TypeError(
            f"{name} cannot be sent to a new process ({error}): {remedy}, "
            'or pass start_method="fork"'
        ) from error


class _PicklingPopen:
    """Replaces multiprocessing's `Popen` in a trial pickling; duplicates no file descriptors."""

    DupFd = int

    def duplicate_for_child(self, descriptor: int) -> int:
        return descriptor


class _ValuePickler(ForkingPickler):
    """A `ForkingPickler` that copies tensors which are not in shared memory.

    torch's own reducers would move these tensors to shared memory.
    """

    def reducer_override(self, obj: object) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            return NotImplemented
        storage = obj
        if isinstance(obj, torch.storage.TypedStorage):
            # A TypedStorage issues a deprecation warning when its own methods are called.
            storage = obj._untyped_storage  # noqa: SLF001
        if isinstance(storage, torch.Tensor | torch.UntypedStorage) and not storage.is_shared():
            return obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return NotImplemented


def _pack(value: object) -> bytes:
    buffer = io.BytesIO()
    _ValuePickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()
