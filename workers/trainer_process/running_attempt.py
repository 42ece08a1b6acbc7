"""The state of an attempt while it runs: its order, counters and report."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from palestra.contract.code import AnyCode
from palestra.contract.definition import RlDefinition
from palestra.contract.identity import hash_definition
from palestra.contract.names import CompileMode
from palestra.contract.states import Cause, Outcome, ResumeQuality
from palestra.contract.work_order import AttemptReport, Failure, RunEnd, RunOrder, WorkOrder
from palestra.telemetry.spool import SpoolWriter
from workers.core.errors import DefinitionError, PartNotFoundError
from workers.core.protocols import ClockView
from workers.core.types import JsonObject, StopReason
from workers.ipc.attempt_directory import AttemptDirectory, write_atomically
from workers.rl.envs.factory import find_simulator
from workers.snapshot.attempt_store import load_snapshot
from workers.snapshot.owner import device_name, versions
from workers.snapshot.snapshot_directory import LoadedSnapshot
from workers.trainer_process.control import ControlFlag
from workers.trainer_process.run_log_sink import RunLogSink
from workers.trainer_process.stop_reasons import ATTEMPT_ENDS


@dataclass(slots=True)
class RunningAttempt:
    """An attempt while it runs: its order, its counters and its report."""

    directory: AttemptDirectory
    order: WorkOrder
    control: ControlFlag
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    resume_quality: ResumeQuality = ResumeQuality.FRESH
    clock: ClockView | None = None
    device: str = "cpu"
    compile: CompileMode | None = None
    """How updates run; `None` before that is decided, and where none can be compiled."""
    other_code: AnyCode | None = None
    """The code that runs, if it differs from that of the work order."""
    ends: dict[int, RunEnd] = field(default_factory=dict)
    """Ends of the runs of a pack, by index; reported also where another run fails later."""

    @property
    def run(self) -> RunOrder:
        """The one run of the work order.

        Raises:
            DefinitionError: If it carries several runs.
        """
        if len(self.order.runs) != 1:
            schedule = self.order.schedule.value
            raise DefinitionError(
                f"a job of the schedule {schedule!r} is on one run, not on a pack of "
                f"{len(self.order.runs)}"
            )
        return self.order.runs[0]

    @contextmanager
    def open_records(self) -> Iterator[RunLogSink]:
        """Opens the spool for the records of a job, each with its line in the log."""
        with SpoolWriter(self.directory.spool) as spool:
            yield RunLogSink(spool)

    def load_snapshot(self, run: RunOrder) -> LoadedSnapshot:
        """Reads and verifies the snapshot that the work order names for a run.

        Raises:
            DefinitionError: If the work order names none.
        """
        reference = run.snapshot
        if reference is None:
            raise DefinitionError(
                f"a job of the schedule {self.order.schedule.value!r} needs a snapshot, and the "
                "work order names none"
            )
        directory = self.directory.inputs / reference.snapshot_id
        return load_snapshot(
            directory, run_id=run.run_id, definition_hash=hash_definition(self.order.definition)
        )

    def exports(self, run: RunOrder) -> Path:
        """Returns the directory of a run's exports."""
        return self.directory.exports / run.run_id

    def end_at_orders(self) -> None:
        """Ends the process as soon as an order arrives, for work that has no state to save."""

        def end(reason: StopReason) -> None:
            outcome, cause = ATTEMPT_ENDS[reason]
            write_atomically(
                self.directory.report,
                self.report(outcome, cause).model_dump_json(indent=1).encode(),
            )
            os._exit(0)

        self.control.call_at_order(end)

    def report_end(self, reason: StopReason, message: str | None = None) -> AttemptReport:
        """Returns the report of a training that ended for `reason`, as `end_of` has it."""
        return self.report(**end_of(reason, message))

    def report(
        self, outcome: Outcome, cause: Cause, failure: Failure | None = None
    ) -> AttemptReport:
        """Returns the report, with the counters and the provenance of this moment."""
        return AttemptReport(
            outcome=outcome,
            cause=cause,
            failure=failure,
            resume_quality=self.resume_quality,
            **(counters(self.clock) if self.clock else {}),
            provenance=self._provenance(),
            runs=tuple(self.ends[index] for index in sorted(self.ends)),
        )

    def _provenance(self) -> JsonObject:
        other = self.other_code
        return {
            **({} if other is None else {"other_code": other.model_dump(mode="json")}),
            "started": self.started,
            "ended": datetime.now(UTC).isoformat(),
            "versions": versions(),
            "device": device_name(self.device),
            "cpu_threads": self.order.resources.cpu_threads,
            **self._describe_simulator(),
            **({} if self.compile is None else {"compile": self.compile}),
            "pid": os.getpid(),
            "command": sys.argv,
        }

    def _describe_simulator(self) -> JsonObject:
        definition = self.order.definition
        if self.clock is None or not isinstance(definition, RlDefinition):
            return {}
        try:
            simulator = find_simulator(definition.env)
        except PartNotFoundError:  # This may be the failure that is reported.
            return {}
        return {} if simulator is None else {"simulator": simulator}


def end_of(reason: StopReason, message: str | None = None) -> JsonObject:
    """Returns outcome, cause and failure of a training that ended for `reason`.

    The failure is the message of the hook that ended it; `None` without one.
    """
    outcome, cause = ATTEMPT_ENDS[reason]
    failure = None if message is None else Failure(message=message)
    return {"outcome": outcome, "cause": cause, "failure": failure}


def counters(clock: ClockView) -> JsonObject:
    """Returns the counters of a report."""
    return {"env_step": clock.env_steps, "update": clock.updates, "episode": clock.episodes}
