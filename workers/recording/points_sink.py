"""Writes tables of points as one record per series, for servers that do not know tables."""

from collections.abc import Iterator

from palestra.contract.telemetry import Points, RunRecord, Table
from workers.recording.recorder import Sink


class PointsSink:
    """A sink that divides each table into the points of its series.

    Args:
        sink: Receives the records, in one call.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def append(self, records: list[RunRecord]) -> int:
        """Appends records, points in place of tables."""
        return self._sink.append([one for record in records for one in _divide(record)])


def _divide(record: RunRecord) -> Iterator[RunRecord]:
    if not isinstance(record, Table):
        yield record
        return
    axes = {
        name: getattr(record, name) for name in ("run", "env_step", "update", "episode", "wall")
    }
    for series, value in record.series.items():
        yield Points(**axes, series=series, value=value)
