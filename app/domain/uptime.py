"""Measures the time without heartbeats during which the server was up.

Pure: the caller passes times of the database's clock and the servers' uptime counter.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class UptimeLog:
    """Samples of the servers' uptime counter, taken by one observer.

    Attributes:
        keep_seconds: Uptime for which samples are kept; longer durations count as this long.
    """

    keep_seconds: float
    _times: list[datetime] = field(default_factory=list)
    _uptimes: list[float] = field(default_factory=list)

    def note(self, at: datetime, uptime: float) -> None:
        """Adds a sample.

        Args:
            at: Time of the sample; a time before the last sample drops all earlier samples.
            uptime: Total seconds that servers were up, a counter that never decreases.
        """
        if self._times and (at < self._times[-1] or uptime < self._uptimes[-1]):
            self.forget()
        if self._uptimes[-2:] == [uptime, uptime]:
            self._times[-1] = at
            return
        self._times.append(at)
        self._uptimes.append(uptime)
        old = bisect_left(self._uptimes, uptime - self.keep_seconds) - 1
        if old > 0:
            del self._times[:old], self._uptimes[:old]

    def forget(self) -> None:
        """Drops all samples, so that durations are measured from the next sample on."""
        self._times.clear()
        self._uptimes.clear()

    def seconds_since(self, time: datetime) -> float:
        """Returns the uptime in seconds since the first sample at or after `time`.

        0 without such a sample.
        """
        first = bisect_left(self._times, time)
        return self._uptimes[-1] - self._uptimes[first] if first < len(self._times) else 0.0
