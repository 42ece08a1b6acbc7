"""Results of an attempt that will never be stored, and their effect on its outcome. Pure."""

from palestra.contract.states import Cause, Outcome
from palestra.contract.telemetry import SnapshotWritten
from palestra.contract.work_order import AttemptReport, Failure

_ADVICE = "Train the run again with `palestra retry`, or fetch the kept copy from the worker."


class MissingResults:
    """The last snapshots and the exports that will not be stored.

    The server refused them permanently, or a user discarded them.
    """

    def __init__(self) -> None:
        self._snapshots: dict[str, tuple[tuple[int, int], str]] = {}
        self._exports: dict[str, str] = {}

    def record_missing_snapshot(self, snapshot: SnapshotWritten, reason: str) -> None:
        """Records that a snapshot will not be stored.

        It counts as missing until a later snapshot of its run is stored.
        """
        place = (snapshot.env_step, snapshot.update)
        self._snapshots[snapshot.run] = max(
            self._snapshots.get(snapshot.run, (place, "")), (place, f"the last snapshot: {reason}")
        )

    def record_stored(self, snapshot: SnapshotWritten) -> None:
        """Records that a snapshot is stored."""
        if snapshot.run in self._snapshots and self._snapshots[snapshot.run][0] <= (
            snapshot.env_step,
            snapshot.update,
        ):
            del self._snapshots[snapshot.run]

    def record_missing_export(self, run: str, name: str, reason: str) -> None:
        """Records that an export will not be stored."""
        self._exports[run] = f"the export {name}: {reason}"

    def judge(self, report: AttemptReport) -> AttemptReport:
        """Returns the report with the outcome `failed` for runs whose results are missing.

        Only the outcome `succeeded` is changed; the cause becomes `no_result`.
        """
        ends = tuple(
            end.model_copy(update=self._verdict(end.run_id))
            if self._is_missing(end.outcome, end.run_id)
            else end
            for end in report.runs
        )
        spoilt = report.model_copy(update={"runs": ends})
        lost = [
            run
            for run in (*self._snapshots, *self._exports)
            if not ends or all(end.outcome is Outcome.FAILED for end in ends)
        ]
        if report.outcome is not Outcome.SUCCEEDED or not lost:
            return spoilt
        return spoilt.model_copy(update=self._verdict(lost[0]))

    def _is_missing(self, outcome: Outcome, run: str) -> bool:
        return outcome is Outcome.SUCCEEDED and (run in self._snapshots or run in self._exports)

    def _verdict(self, run: str) -> dict[str, object]:
        what = self._snapshots[run][1] if run in self._snapshots else self._exports[run]
        message = f"The training came to its end, but its result is not stored: {what}. {_ADVICE}"
        return {
            "outcome": Outcome.FAILED,
            "cause": Cause.NO_RESULT,
            "failure": Failure(message=message[:4_000]),
        }
