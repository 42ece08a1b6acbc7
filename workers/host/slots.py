"""Slots: the right to run one attempt, held as a lock on a file.

The lock belongs to an open file description, which supervisor and trainer inherit: the slot is free
once the last process of the attempt has ended, even if the worker was restarted in between.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAUSE_SECONDS: Final = 0.005
_LOOK_SECONDS: Final = 0.015
"""Maximum seconds for which another process locks a free slot in `count_free` or `busy_indices`."""


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """A slot that this process holds; subprocesses that inherit the descriptor hold it too."""

    index: int
    descriptor: int

    def release(self) -> None:
        """Closes this process's descriptor; the slot stays held while a subprocess has it open."""
        os.close(self.descriptor)


class Slots:
    """The slots of one worker.

    Args:
        state_directory: The worker's directory; the locks are in `slots/`.
        count: Number of slots.
    """

    def __init__(self, state_directory: Path, count: int) -> None:
        self._directory = state_directory / "slots"
        self._directory.mkdir(parents=True, exist_ok=True)
        self.count = count

    def take(
        self, patience: float = _LOOK_SECONDS, *, besides: frozenset[int] = frozenset()
    ) -> HeldSlot | None:
        """Locks the first free slot that is not in `besides`.

        `None` if no such slot becomes free within `patience` seconds.
        """
        end = time.monotonic() + patience
        while (slot := self._take_first_free(besides)) is None and time.monotonic() < end:
            time.sleep(_PAUSE_SECONDS)
        return slot

    def take_one(self, index: int) -> HeldSlot | None:
        """Locks the slot `index`; `None` if it is held."""
        return next(iter(self._take_free([index])), None)

    def _take_first_free(self, besides: frozenset[int]) -> HeldSlot | None:
        return next(
            self._take_free(index for index in range(self.count) if index not in besides), None
        )

    def _take_free(self, indices: Iterable[int]) -> Iterator[HeldSlot]:
        """Locks and yields the free slots one by one, until the caller stops iterating."""
        for index in indices:
            descriptor = self._open(index)
            if _lock(descriptor, fcntl.LOCK_EX):
                yield HeldSlot(index, descriptor)
            else:
                os.close(descriptor)

    def count_free(self) -> int:
        """Returns the number of free slots.

        Acquires a shared lock on each slot for a moment; a concurrent `take` waits for it.
        """
        return self.count - len(self.busy_indices())

    def busy_indices(self) -> tuple[int, ...]:
        """Returns the indices of the slots that are held.

        Acquires shared locks as `count_free` does.
        """
        return tuple(index for index in range(self.count) if not self._is_free(index))

    def _is_free(self, index: int) -> bool:
        descriptor = self._open(index)
        try:
            return _lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _open(self, index: int) -> int:
        return os.open(
            self._directory / f"{index}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def gpus_of_slot(slot: int, slots: int, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the GPUs of a slot: an equal share, or one shared GPU if slots outnumber GPUs."""
    if not gpus:
        return ()
    return gpus[slot::slots] if len(gpus) >= slots else (gpus[slot % len(gpus)],)
