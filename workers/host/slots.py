"""Slots: the right to run one attempt on one or several of them, held as locks on files.

A lock belongs to an open file description, which supervisor and trainer inherit: the slot is free
once the last process of the attempt has ended, even if the worker was restarted in between.
"""

import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAUSE_SECONDS: Final = 0.005
_LOOK_SECONDS: Final = 0.015
"""Maximum seconds for which another process locks a free slot in `count_free` or `busy_indices`."""


@dataclass(frozen=True, slots=True)
class HeldSlots:
    """Slots that this process holds; subprocesses that inherit the descriptors hold them too."""

    indices: tuple[int, ...]
    """In ascending order."""
    descriptors: tuple[int, ...]
    """The descriptor of each slot's lock."""

    def release(self) -> None:
        """Closes this process's descriptors; slots stay held while a subprocess has them open."""
        for descriptor in self.descriptors:
            os.close(descriptor)


class Slots:
    """The slots of one worker.

    Args:
        state_directory: The worker's directory; the locks are in `slots/`.
        count: Number of slots.
        sleep: Called with seconds between two attempts to take slots.
    """

    def __init__(
        self, state_directory: Path, count: int, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._directory = state_directory / "slots"
        self._directory.mkdir(parents=True, exist_ok=True)
        self.count = count
        self._sleep = sleep

    def take(
        self,
        number: int = 1,
        *,
        patience: float = _LOOK_SECONDS,
        besides: frozenset[int] = frozenset(),
    ) -> HeldSlots | None:
        """Locks the first free slots that are not in `besides`: `number` of them or none.

        `None` if they are not free at the same time within `patience` seconds. No slot stays locked
        while this waits for others, so processes that take several slots cannot block each other.
        """
        indices = [index for index in range(self.count) if index not in besides]
        if number > len(indices):
            return None
        end = time.monotonic() + patience
        while (held := self._take_free(indices, number)) is None and time.monotonic() < end:
            self._sleep(_PAUSE_SECONDS)
        return held

    def take_these(self, indices: Collection[int]) -> HeldSlots | None:
        """Locks the slots of some indices; `None` if one of them is held."""
        return self._take_free(sorted(indices), len(indices))

    def _take_free(self, indices: Iterable[int], number: int) -> HeldSlots | None:
        """Locks the first free slots; none if they are fewer than `number`."""
        if number == 1:
            return self._lock_free(indices, number)
        # Two processes that each locked a part of the slots would both fail, and again.
        gate = self._open("several")
        try:
            return self._lock_free(indices, number) if _lock(gate, fcntl.LOCK_EX) else None
        finally:
            os.close(gate)

    def _lock_free(self, indices: Iterable[int], number: int) -> HeldSlots | None:
        held: list[tuple[int, int]] = []
        for index in indices:
            descriptor = self._open(str(index))
            if not _lock(descriptor, fcntl.LOCK_EX):
                os.close(descriptor)
                continue
            held.append((index, descriptor))
            if len(held) == number:
                return HeldSlots(tuple(one for one, _ in held), tuple(one for _, one in held))
        for _, descriptor in held:
            os.close(descriptor)
        return None

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
        descriptor = self._open(str(index))
        try:
            return _lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _open(self, name: str) -> int:
        return os.open(
            self._directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def gpus_of_slots(indices: Iterable[int], slots: int, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the GPUs of some of the slots of a worker, each once.

    The GPUs of a slot are an equal share, or one shared GPU if slots outnumber GPUs.
    """
    if not gpus:
        return ()
    found: dict[int, None] = {}
    for slot in indices:
        of_slot = gpus[slot::slots] if len(gpus) >= slots else (gpus[slot % len(gpus)],)
        found |= dict.fromkeys(of_slot)
    return tuple(found)
