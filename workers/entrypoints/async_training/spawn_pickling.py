"""Pickling of the caller's parts for new processes.

Parts are checked before a process starts, and unpickled where a failure can be reported.

Tensors travel by value, unless they lie in shared memory already: then the processes see the same
ones. torch is looked at only where it is loaded, for without it nothing can hold a tensor.
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


class Parcel:
    """A value that is sent to a new process.

    One that was forked has it already; another unpacks it with `unpack`.

    Args:
        value: Anything that can be pickled while a process is started.
    """

    def __init__(self, value: object) -> None:
        self._value = value
        self._packed: bytes | None = None

    def unpack(self) -> Any:
        """Returns the value; raises what unpickling it raises."""
        if self._packed is not None:
            # Packed by the process that started this one.
            self._value, self._packed = pickle.loads(self._packed), None  # noqa: S301
        return self._value

    def __getstate__(self) -> bytes:
        return _pack(self._value)

    def __setstate__(self, packed: bytes) -> None:
        self._packed = packed


def crosses(value: object) -> BaseException | None:
    """Returns why a value cannot be given to a spawned process; `None` where it can."""
    rehearsal: Any = _Rehearsal()
    context.set_spawning_popen(rehearsal)
    try:
        _pack(value)
    except Exception as error:  # noqa: BLE001 - pickling runs any code
        return error
    finally:
        context.set_spawning_popen(None)
    return None


def check_crosses(name: str, value: object, remedy: str = _REMEDY) -> None:
    """Raises TypeError where the value of a parameter cannot be sent to a spawned process."""
    error = crosses(value)
    if error is not None:
        raise TypeError(
            f"{name} cannot be sent to a new process ({error}): {remedy}, "
            'or pass start_method="fork"'
        ) from error


class _Rehearsal:
    """Takes the place of a process in a trial pickling: descriptors are not duplicated."""

    DupFd = int

    def duplicate_for_child(self, descriptor: int) -> int:
        return descriptor


class _ValuePickler(ForkingPickler):
    """Pickles for a process that is being started, but copies tensors that are not shared."""

    def reducer_override(self, obj: object) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            return NotImplemented
        # To ask it itself warns.
        storage = obj._untyped_storage if isinstance(obj, torch.storage.TypedStorage) else obj  # noqa: SLF001
        if isinstance(storage, torch.Tensor | torch.UntypedStorage) and not storage.is_shared():
            return obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return NotImplemented


def _pack(value: object) -> bytes:
    buffer = io.BytesIO()
    _ValuePickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()
