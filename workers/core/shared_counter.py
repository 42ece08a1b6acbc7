"""A counter that several processes share without a lock. Linux only."""

import os
import weakref
from collections.abc import Callable
from multiprocessing.reduction import DupFd
from typing import Any

_seek, _FROM_HERE = os.lseek, os.SEEK_CUR


class SharedCount:
    """A number that several processes add to, at least 0.

    The number is stored as the offset of an anonymous file, which `lseek` changes atomically in
    half a microsecond; a lock around an integer in shared memory takes four. POSIX requires
    atomicity for regular files (2.9.7). Linux provides it for descriptors that `open` returned: a
    descriptor of `memfd_create` loses counts, so the file is opened again. A counter can be used
    in forked processes and can be passed to a process that is being started.
    """

    def __init__(self) -> None:
        created = os.memfd_create("palestra-count", os.MFD_CLOEXEC)
        try:
            self._attach(os.open(f"/proc/self/fd/{created}", os.O_RDWR | os.O_CLOEXEC))
        finally:
            os.close(created)

    @property
    def value(self) -> int:
        """The sum of all added amounts."""
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)

    @value.setter
    def value(self, value: int) -> None:
        os.lseek(self._descriptor, value, os.SEEK_SET)

    def add(self, amount: int) -> int:
        """Adds `amount` and returns the sum.

        If `amount` is positive, no two calls return the same sum, whichever processes make them.
        """
        return _seek(self._descriptor, amount, _FROM_HERE)

    def __reduce__(self) -> tuple[Callable[[object], "SharedCount"], tuple[object]]:
        return _rebuild_count, (DupFd(self._descriptor),)

    def _attach(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)


def _rebuild_count(duplicate: Any) -> SharedCount:
    count = SharedCount.__new__(SharedCount)
    count._attach(duplicate.detach())  # noqa: SLF001 - the constructor of a copy
    return count
