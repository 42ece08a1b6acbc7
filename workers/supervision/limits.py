"""The bounds on one attempt: wall time, stall and memory. Pure: told the time, never asks for it."""

from dataclasses import dataclass
from typing import Any, Final

from palestra.contract.names import Schedule
from palestra.contract.options import Limits, Resources
from palestra.contract.states import Cause

MEMORY_EVERY_SECONDS: Final = 1.0
"""Period in which the memory is measured, where there is a limit."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A bound that was reached."""

    cause: Cause
    message: str


class LimitWatch:
    """Decides whether an attempt went over one of its bounds.

    Args:
        schedule: Only schedules that train are watched for stalls.
        limits: Wall time and stall.
        resources: Memory.
        started: Time of the monotonic clock when the trainer started.
    """

    def __init__(self, schedule: Schedule, limits: Limits, resources: Resources, started: float) -> None:
        self._limits = limits
        self._memory_mib = resources.memory_mib
        self._watches_stalls = schedule.writes_training_state
        self._started = started
        self._progress: dict[str, Any] = {}
        self._moved = started

    @property
    def limits_memory(self) -> bool:
        """Whether the memory has to be measured."""
        return self._memory_mib is not None

    def check(self, now: float, progress: dict[str, Any]) -> Breach | None:
        """Returns the bound of time that was reached, if one was."""
        if progress != self._progress:
            self._progress, self._moved = progress, now
        wall, stall = self._limits.wall_seconds, self._limits.stall_seconds
        if wall is not None and now - self._started >= wall:
            return Breach(Cause.TIME_LIMIT, f"The attempt reached its wall time of {wall} s. Raise limits.wall_seconds, or resume the run.")
        if self._watches_stalls and now - self._moved >= stall:
            return Breach(
                Cause.STALLED,
                f"No new env_step or update for {stall} s: the environment hangs, or limits.stall_seconds is too short for it. "
                "The stacks of all threads are at the end of the log.",
            )
        return None

    def check_memory(self, used_mib: float) -> Breach | None:
        """Returns the breach if the processes use more memory than they may."""
        if self._memory_mib is None or used_mib <= self._memory_mib:
            return None
        return Breach(
            Cause.HOST_OUT_OF_MEMORY,
            f"The trainer used {used_mib:.0f} MiB of the {self._memory_mib} MiB that it may use. "
            "Raise resources.memory_mib, or lower agent.buffer_size or env.num_envs.",
        )
