"""The limits of one attempt: wall time, stall and memory.

Pure: the caller passes the time.
"""

from dataclasses import dataclass
from typing import Final

from palestra.contract.job_options import Limits, Resources
from palestra.contract.names import Schedule
from palestra.contract.states import Cause

MEMORY_EVERY_SECONDS: Final = 1.0
"""Interval of the memory measurements if there is a memory limit."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that was reached."""

    cause: Cause
    message: str


class LimitWatch:
    """Decides whether an attempt has reached one of its limits.

    Steps of evaluations count as progress. A continuous evaluation that waits for a snapshot sets
    `waiting` in its progress and counts its polls there. The waiting time does not count as wall
    time, and polls count as progress: the attempt is stalled only if an evaluation makes no step,
    or if polling has stopped.

    Args:
        schedule: Schedules that read one snapshot have no stall limit.
        limits: Limits of wall time and stall.
        resources: Limit of memory.
        started: Time of the monotonic clock when the trainer started.
    """

    def __init__(
        self, schedule: Schedule, limits: Limits, resources: Resources, started: float
    ) -> None:
        self._limits = limits
        self._memory_mib = resources.memory_mib
        self._follows = schedule.follows_training
        self._watches_stalls = schedule.starts_runs or self._follows
        self._started = started
        self._looked = started
        self._waited = 0.0
        self._progress: dict[str, object] = {}
        self._moved = started

    @property
    def limits_memory(self) -> bool:
        """Whether the memory has to be measured."""
        return self._memory_mib is not None

    def check(self, now: float, progress: dict[str, object]) -> Breach | None:
        """Returns the limit of wall time or stall that was reached, or `None`.

        Args:
            now: Time of the monotonic clock.
            progress: The content of the trainer's progress file.
        """
        if self._progress.get("waiting") is True:
            self._waited += now - self._looked
        self._looked = now
        if progress != self._progress:
            self._progress, self._moved = progress, now
        wall, stall = self._limits.wall_seconds, self._limits.stall_seconds
        if wall is not None and now - self._started - self._waited >= wall:
            return Breach(
                Cause.TIME_LIMIT,
                f"The attempt reached its wall time of {wall} s. Raise limits.wall_seconds, or "
                "resume the run.",
            )
        if self._watches_stalls and now - self._moved >= stall:
            missing = (
                "No step of an evaluation"
                if self._follows
                else "No new env_step, in training or in an evaluation, and no update"
            )
            return Breach(
                Cause.STALLED,
                f"{missing} for {stall} s: the environment hangs, or limits.stall_seconds is too "
                "short for it. "
                "The stacks of all threads are at the end of the log.",
            )
        return None

    def check_memory(self, used_mib: float) -> Breach | None:
        """Returns the memory limit if `used_mib` exceeds it, or `None`."""
        if self._memory_mib is None or used_mib <= self._memory_mib:
            return None
        return Breach(
            Cause.HOST_OUT_OF_MEMORY,
            f"The trainer used {used_mib:.0f} MiB of the {self._memory_mib} MiB that it may use. "
            "Raise resources.memory_mib, or lower agent.buffer_size or env.num_envs.",
        )
