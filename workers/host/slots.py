"""Slots: the right to run one attempt, held as a lock on a file.

The lock belongs to an open file, which supervisor and trainer inherit: the slot is free only when
the last process of the attempt is gone, whatever happened to the worker in between.
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
"""How long a look from elsewhere may hold a free slot's lock."""


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """A slot that this process holds; others hold it too once they inherit the descriptor."""

    index: int
    descriptor: int

    def release(self) -> None:
        """Closes this process's hold on it."""
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
        """Takes the first free slot that is not in `besides`.

        `None` if all are still taken after `patience` seconds.
        """
        end = time.monotonic() + patience
        while (slot := self._first_free(besides)) is None and time.monotonic() < end:
            time.sleep(_PAUSE_SECONDS)
        return slot

    def take_one(self, index: int) -> HeldSlot | None:
        """Takes a certain slot; `None` if it is taken."""
        return next(iter(self._free_among([index])), None)

    def _first_free(self, besides: frozenset[int]) -> HeldSlot | None:
        return next(
            self._free_among(index for index in range(self.count) if index not in besides), None
        )

    def _free_among(self, indices: Iterable[int]) -> Iterator[HeldSlot]:
        """Yields the slots that are free, each taken; whoever needs no more of them stops."""
        for index in indices:
            descriptor = self._open(index)
            if _lock(descriptor, fcntl.LOCK_EX):
                yield HeldSlot(index, descriptor)
            else:
                os.close(descriptor)

    def free(self) -> int:
        """Returns how many slots are free now.

        The look takes a shared lock for an instant, which `take` waits out.
        """
        return self.count - len(self.busy())

    def busy(self) -> tuple[int, ...]:
        """Returns the slots that are held now, by a look such as that of `free`."""
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
