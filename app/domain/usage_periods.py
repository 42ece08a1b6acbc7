"""Periods of accounting, divided into buckets of equal length."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

BUCKET_ORIGIN: Final = datetime.fromisoformat("2024-01-01T00:00:00Z")
"""A Monday: hours, days and weeks of UTC are counted from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePeriod:
    """A period with the width of its buckets."""

    since: datetime
    until: datetime
    """Exclusive."""
    bucket_seconds: int | None = None
    """`None`: the whole period is one bucket."""

    @property
    def origin(self) -> datetime:
        """Start of the first bucket, which may lie before `since`."""
        if self.bucket_seconds is None:
            return self.since
        width = timedelta(seconds=self.bucket_seconds)
        return self.since - (self.since - BUCKET_ORIGIN) % width

    @property
    def width(self) -> float:
        """Length of a bucket in seconds."""
        if self.bucket_seconds is None:
            return max((self.until - self.since).total_seconds(), 1e-6)
        return float(self.bucket_seconds)

    @property
    def buckets(self) -> int:
        """Number of buckets."""
        length = (self.until - self.origin).total_seconds()
        return max(1, int(-(-length // self.width)))

    def start_of(self, index: int) -> datetime:
        """Returns the start of a bucket, or of the period if the first bucket begins before it."""
        start = self.origin + timedelta(seconds=index * self.width)
        return max(start, self.since)

    def end_of(self, index: int) -> datetime:
        """Returns the end of a bucket, or of the period if the last bucket ends after it."""
        return min(self.origin + timedelta(seconds=(index + 1) * self.width), self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSum:
    """Sum of intervals that begin in one bucket and end in another one, or the same."""

    first: int
    last: int
    devices: int
    """Sum of their devices."""
    whole: float
    """Device-seconds of the intervals."""
    head: float
    """Device-seconds in the first bucket, if it is not the last one."""
    tail: float
    """Device-seconds in the last bucket, if it is not the first one."""


def divide(interval: IntervalSum, width: float) -> Iterator[tuple[int, float]]:
    """Yields the device-seconds of each bucket that the intervals overlap."""
    if interval.first == interval.last:
        yield interval.first, interval.whole
        return
    yield interval.first, interval.head
    for index in range(interval.first + 1, interval.last):
        yield index, interval.devices * width
    yield interval.last, interval.tail


def measure(period: UsagePeriod, start: datetime, end: datetime, devices: int) -> IntervalSum:
    """Returns the `IntervalSum` of one interval, limited to a period that it overlaps."""
    width = period.width
    begin = (max(start, period.since) - period.origin).total_seconds()
    finish = (min(end, period.until) - period.origin).total_seconds()
    first = int(begin // width)
    last = max(first, int((finish - 1e-6) // width))
    return IntervalSum(
        first=first,
        last=last,
        devices=devices,
        whole=devices * (finish - begin),
        head=devices * ((first + 1) * width - begin),
        tail=devices * (finish - last * width),
    )
