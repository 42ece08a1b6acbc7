"""Supervises one attempt from its start to its release."""

import os
import socket
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

from pydantic import ValidationError

from palestra.contract.states import Cause, Order, Outcome
from palestra.contract.work_order import AttemptReport, Failure, Renewal, WorkOrder
from palestra.telemetry.spool import SpoolWriter
from palestra.telemetry.transport import open_client
from workers.ipc import run_log
from workers.ipc.attempt_directory import AttemptDirectory, write_atomically
from workers.ipc.credentials import Credentials
from workers.ipc.failed_start import report_failed_start
from workers.ipc.full_disk import ADVICE, NO_SPACE, is_almost_full, is_full_error
from workers.ipc.json_log import Logger
from workers.ipc.process_tree import out_of_memory_kills, reap_orphans
from workers.supervisor.attempt_telemetry import Observer
from workers.supervisor.limits import MEMORY_EVERY_SECONDS, Breach, LimitWatch
from workers.supervisor.outcome import TrainerExit, report_of
from workers.supervisor.pending_order import PendingOrder
from workers.supervisor.resource_usage import ResourceSampler, resident_mib
from workers.supervisor.server_link import LinkParts, ServerLink
from workers.supervisor.snapshot_download import InputError, fetch_inputs
from workers.supervisor.snapshot_feed import FeedParts, SnapshotFeed
from workers.supervisor.trainer_handle import TrainerOptions, TrainerProcess

TICK_SECONDS: Final = 0.2


class Supervision:
    """Supervises one attempt from its start to its release.

    Args:
        directory: The attempt's directory, with its work order.
        credentials: Address of the server, and the attempt's token.
        options: How to start the trainer; of the GPUs and threads only as many are used as the work
            order's resources state.
        log: The supervisor's log.
    """

    def __init__(
        self,
        directory: AttemptDirectory,
        credentials: Credentials,
        options: TrainerOptions,
        log: Logger,
    ) -> None:
        self._directory = directory
        self._work_order = WorkOrder.model_validate_json(directory.work_order.read_bytes())
        self._options = options
        self._log = log
        self._spool = SpoolWriter(directory.spool)
        self._box = PendingOrder()
        schedule = self._work_order.schedule
        self._observer = Observer(
            directory,
            [run.run_id for run in self._work_order.runs],
            self._spool,
            ResourceSampler(options.gpus),
            log,
            prefix="" if schedule.writes_training_state else f"{schedule.value}/",
        )
        self._trainer: TrainerProcess | None = None
        self._breach: Breach | None = None
        self._feed: SnapshotFeed | None = None
        self._has_terminate_signal = False
        self._link = ServerLink(
            LinkParts(
                client=open_client(credentials.server, credentials.token),
                directory=directory,
                spool=self._spool,
                box=self._box,
                log=log,
                renew_seconds=credentials.renew_seconds,
                renewal=self._renewal,
                run_ids=tuple(run.run_id for run in self._work_order.runs),
            )
        )

    def on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        """Handles SIGTERM: only sets a flag, since a handler may interrupt any statement."""
        self._has_terminate_signal = True

    def run(self) -> bool:
        """Executes the attempt and releases it; `False` if the attempt is stale."""
        self._link.start()
        report = self._read_ending() or self._work()
        self._write_ending(report)
        released = self._link.release(report)
        if released is None:
            self._log.info("attempt.stale")
            return False
        self._log.info("attempt.released", outcome=released.outcome, cause=released.cause)
        self._directory.clear_blobs()
        write_atomically(self._directory.released, released.model_dump_json().encode())
        return True

    def _read_ending(self) -> AttemptReport | None:
        """Returns the report that an earlier supervisor stored; `None` at the first start.

        There is one if that supervisor died while it uploaded results.
        """
        ending = _read_report(self._directory.ending)
        if ending is not None or not self._directory.report.exists():
            return ending
        return report_of(self._trainer_exit(was_killed_for_memory=False))

    def _write_ending(self, report: AttemptReport) -> None:
        """Stores the report, so that a supervisor that adopts the attempt only uploads results."""
        try:
            write_atomically(self._directory.ending, report.model_dump_json().encode())
        except OSError as error:
            self._log.warning("ending.not_written", reason=str(error))

    def _work(self) -> AttemptReport:
        self._observer.log(
            f"attempt {self._work_order.attempt_number} of {self._work_order.job_id} begins on "
            f"{socket.gethostname()}"
        )
        report = self._execute()
        if run_log.is_recorded(report):
            ended = {end.run_id for end in report.runs}
            self._observer.log(
                *run_log.end_lines(report),
                to=[run.run_id for run in self._work_order.runs if run.run_id not in ended],
            )
        return report

    def _execute(self) -> AttemptReport:
        """Executes the attempt and returns its report.

        Until the trainer has started, any error is a failed start. Afterwards a full disk ends the
        attempt with `disk_full` even if only this process met it.
        """
        try:
            return self._train()
        except Exception as error:
            if not self._directory.trainer_started.exists():
                self._log.exception("trainer.not_started")
                return report_failed_start(f"{type(error).__name__}: {error}")
            if not (isinstance(error, OSError) and is_full_error(error)):
                raise
            return AttemptReport(
                outcome=Outcome.FAILED,
                cause=Cause.DISK_FULL,
                failure=Failure(message=f"{ADVICE} ({error})"),
            )

    def _train(self) -> AttemptReport:
        kills_before = out_of_memory_kills()
        try:
            fetch_inputs(
                self._link.api,
                self._directory,
                self._work_order,
                lambda: self._order() is not Order.CONTINUE,
            )
        except InputError as error:
            if error.cause is Cause.DISK_FULL:
                return report_failed_start(str(error))
            return AttemptReport(
                outcome=Outcome.FAILED, cause=error.cause, failure=Failure(message=str(error))
            )
        if self._order() is Order.CONTINUE:
            if is_almost_full(self._directory.root):
                return report_failed_start(NO_SPACE)
            self._supervise()
        return report_of(
            self._trainer_exit(was_killed_for_memory=out_of_memory_kills() > kills_before)
        )

    def _order(self) -> Order:
        if self._has_terminate_signal:
            self._box.give(Order.DRAIN)
        return self._box.order

    def _supervise(self) -> None:
        trainer = self._trainer = TrainerProcess(self._directory, self._options, os.environ)
        self._log.info("trainer.started", pid=trainer.pid)
        self._link.renew_soon()
        feeding = self._start_feed()
        try:
            self._watch(trainer)
        finally:
            feeding.set()
            trainer.close()
            reap_orphans(frozenset())
            self._observer.finish()
        self._log.info("trainer.ended", status=trainer.poll())

    def _start_feed(self) -> threading.Event:
        """Starts the snapshot feed of a continuous evaluation; returns the event that stops it."""
        stop, (run, *_) = threading.Event(), self._work_order.runs
        if run.follow is not None:
            is_first = self._work_order.attempt_number == 1
            self._feed = SnapshotFeed(
                FeedParts(
                    api=self._link.api,
                    directory=self._directory,
                    run=run,
                    log=self._log,
                    is_first_attempt=is_first,
                )
            )
            threading.Thread(target=self._feed.run, args=(stop,), name="feed", daemon=True).start()
        return stop

    def _feed_breach(self) -> Breach | None:
        return None if self._feed is None else self._feed.breach

    def _watch(self, trainer: TrainerProcess) -> None:
        """Watches the trainer until it has ended or has to be killed."""
        stopping = _StopRequest(trainer, self._observer, self._work_order.limits.grace_seconds)
        limits = LimitWatch(
            self._work_order.schedule,
            self._work_order.limits,
            self._work_order.resources,
            time.monotonic(),
        )
        memory_at, phase = 0.0, self._observer.progress().phase
        while trainer.poll() is None:
            now, order = time.monotonic(), self._order()
            stopping.ask(order, now)
            progress = self._observer.progress()
            if progress.phase != phase:
                phase = progress.phase
                self._link.renew_soon()
            if order is Order.STALE or stopping.is_overdue(now):
                return
            breach = (
                None if self._breach else limits.check(now, progress.raw) or self._feed_breach()
            )
            if breach is None and limits.limits_memory and now - memory_at >= MEMORY_EVERY_SECONDS:
                memory_at, breach = now, limits.check_memory(resident_mib(trainer.pids()))
            if breach is not None and self._must_be_killed_for(breach, trainer, stopping):
                return
            self._observer.poll(now, trainer.pids)
            reap_orphans(trainer.children)
            self._box.wait(TICK_SECONDS)

    def _must_be_killed_for(
        self, breach: Breach, trainer: TrainerProcess, stopping: "_StopRequest"
    ) -> bool:
        self._breach = breach
        self._log.warning("limit.reached", cause=breach.cause)
        self._observer.log(breach.message)
        if breach.cause is Cause.TIME_LIMIT:
            stopping.ask(Order.DRAIN, time.monotonic())
            return False
        if breach.cause is Cause.STALLED:
            trainer.dump_stacks()
        return True

    def _renewal(self) -> Renewal:
        at = self._observer.progress()
        pid = self._trainer.pid if self._trainer is not None else None
        return Renewal(
            trainer_pid=pid,
            env_step=at.env_step,
            update=at.update,
            spooled_seq=self._spool.last_seq(),
            phase=at.phase if self._work_order.schedule.writes_training_state else None,
            compile=at.compile,
        )

    def _trainer_exit(self, *, was_killed_for_memory: bool) -> TrainerExit:
        at = self._observer.progress()
        return TrainerExit(
            exit_status=self._trainer.poll() if self._trainer is not None else None,
            report=_read_report(self._directory.report),
            is_started=self._directory.trainer_started.exists(),
            order=self._order(),
            breach=self._breach,
            was_killed_for_memory=was_killed_for_memory,
            is_disk_full=is_almost_full(self._directory.root),
            last_line=self._observer.last_line,
            env_step=at.env_step,
            update=at.update,
            episode=at.episode,
        )


class _StopRequest:
    """The order that was sent to the trainer, and the deadline for its end."""

    def __init__(self, trainer: TrainerProcess, observer: Observer, grace_seconds: float) -> None:
        self._trainer = trainer
        self._observer = observer
        self._grace = grace_seconds
        self._asked = Order.CONTINUE
        self._deadline: float | None = None

    def ask(self, order: Order, now: float) -> None:
        """Sends an order to the trainer once; the grace period starts with the first order."""
        if order in {Order.CONTINUE, self._asked}:
            return
        self._asked = order
        self._trainer.send(order)
        self._observer.log(
            f"asked to {order.value}"
            if order is not Order.STALE
            else "another attempt took over: ends at once"
        )
        if self._deadline is None:
            self._deadline = now + self._grace

    def is_overdue(self, now: float) -> bool:
        """Returns whether the grace period is over."""
        return self._deadline is not None and now >= self._deadline


def _read_report(path: Path) -> AttemptReport | None:
    try:
        return AttemptReport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
