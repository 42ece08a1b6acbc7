"""How long a silence lasted while the server was up.

Pure: times come from the database's clock, uptime from the servers' own counter.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class UptimeLog:
    """What one observer saw of the servers' uptime, from its first look on.

    Attributes:
        keep_seconds: Uptime after which looks are forgotten; longer silences count as this long.
    """

    keep_seconds: float
    _times: list[datetime] = field(default_factory=list)
    _uptimes: list[float] = field(default_factory=list)

    def note(self, at: datetime, uptime: float) -> None:
        """Adds a look.

        Args:
            at: Time of the look; a time before the last look forgets all looks.
            uptime: Seconds that servers were up so far, a counter that never falls.
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
        """Forgets all looks: every silence begins anew with the next one."""
        self._times.clear()
        self._uptimes.clear()

    def seconds_since(self, time: datetime) -> float:
        """Returns the uptime from the first look at or after `time` to the last look.

        0 without such a look.
        """
        first = bisect_left(self._times, time)
        return self._uptimes[-1] - self._uptimes[first] if first < len(self._times) else 0.0
