"""Writes log lines for users together with the records that they describe."""

from collections.abc import Iterator

from palestra.contract.telemetry import Evaluation, RunRecord, SnapshotWritten
from workers.ipc import run_log
from workers.recording.recorder import Sink


class RunLogSink:
    """A sink that appends a line to the run's log after each evaluation and each snapshot.

    Args:
        sink: Receives records and lines, in one call.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def append(self, records: list[RunRecord]) -> int:
        """Appends records with their lines."""
        return self._sink.append([one for record in records for one in (record, *_lines(record))])


def _lines(record: RunRecord) -> Iterator[RunRecord]:
    if isinstance(record, Evaluation):
        yield from run_log.log_records(record.run, [run_log.evaluation_line(record)])
    elif isinstance(record, SnapshotWritten):
        yield from run_log.log_records(record.run, [run_log.snapshot_line(record)])
