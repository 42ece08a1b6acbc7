"""The worker: registers, and consumes its own Celery queue. Runs as `palestra worker`.

    python -m workers.host --server URL --token-file F --pool NAME --slots N --gpus LIST
        --state-dir D [--name] [--broker URL] [--import MODULE ...]

SIGTERM and Ctrl-C stop it: it claims no further jobs, makes every training save a snapshot and
return to the queue, and ends; a second signal ends it at once, and the trainings save by
themselves. With `--on-stop keep`, on SIGQUIT or after SIGKILL the trainings continue, and the next
worker on the same state directory adopts them.
"""

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from celery import Celery, signals
from celery.worker import state as celery_state
from kombu.entity import Queue

from palestra.addresses import mask_password
from palestra.contract.registration import RegistrationAnswer
from workers.host.broker import (
    SETTINGS,
    choose_broker,
    install_transport,
)
from workers.host.dispatch_task import DispatchTask, DispatchTaskSettings
from workers.host.options import UsageError, WorkerOptions, parse_options
from workers.host.registration import WorkerHost, list_local_attempts
from workers.host.state_lock import StateLock
from workers.ipc.allowed_paths import set_allowed_paths
from workers.ipc.json_log import configure, get_logger
from workers.ipc.worker_imports import set_allowed_imports

_MAX_PROCESSES: Final = 4
"""Largest number of processes that handle dispatch messages.

Handling one takes a second, so a few processes suffice for any number of slots.
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs a worker until it is stopped; returns the exit status."""
    configure()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        options = parse_options(arguments)
        lock = StateLock(options.state_directory)
        set_allowed_imports(options.imports, os.environ)
        set_allowed_paths(options.allowed_paths, os.environ)
    except UsageError as error:
        return _report_refusal(error)
    try:
        return _Worker(options).run()
    except UsageError as error:
        return _report_refusal(error)
    finally:
        lock.release()


def _report_refusal(error: UsageError) -> int:
    sys.stderr.write(f"palestra worker: {error}\n")
    return error.exit_status


def make_app(broker: str, queue: str, task: DispatchTask | None = None) -> Celery:
    """Creates the Celery application with its only task.

    Args:
        broker: Address with a scheme that kombu knows.
        queue: The pool's queue.
        task: The function that the task calls.
    """
    install_transport(task.count_malformed if task is not None else None)
    app = Celery("palestra", broker=broker, set_as_current=False)
    queues = [Queue(queue)]  # type: ignore[no-untyped-call]
    app.conf.update(SETTINGS, task_queues=queues, task_default_queue=queue)
    if task is not None:
        app.task(name=DispatchTask.name, ignore_result=True)(_as_function(task))
    return app


def _as_function(task: DispatchTask) -> object:
    def answer(*arguments: object, **keywords: object) -> None:
        task(*arguments, **keywords)

    return answer


class _Worker:
    """A worker process, from its start to its shutdown."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._log = get_logger()
        self._stop = threading.Event()
        self._is_registered_again = threading.Event()
        self._is_signalled = False
        self._agent = WorkerHost(options, self._stop, self._listen_again)

    def run(self) -> int:
        """Registers, consumes the queue until stopped, and shuts down; returns the exit status."""
        self._warn()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
        self._agent.register()
        adopted = list_local_attempts(self._options.state_directory, time.time()).live
        if adopted:
            self._log.info("attempts.adopted", attempts=[attempt.attempt_id for attempt in adopted])
        thread = threading.Thread(target=self._agent.run, name="agent", daemon=True)
        thread.start()
        try:
            status = self._listen(self._agent.answer)
            while self._is_registered_again.is_set() and not self._is_signalled:
                self._is_registered_again.clear()
                celery_state.should_stop = None
                status = self._listen(self._agent.answer)
        except SystemExit:
            # A signal arrived before Celery had set its own handlers.
            status = 0
        if self._options.on_stop == "drain" and celery_state.should_terminate is None:
            drain(self._options.state_directory, self._options.drain_seconds)
        self._stop.set()
        thread.join(10)
        return status

    def _listen_again(self) -> None:
        """Ends the present consumer, so that another one listens to the queue of the new answer."""
        self._is_registered_again.set()
        celery_state.should_stop = 0

    def _note_signal(self, **_: object) -> None:
        self._is_signalled = True

    def _warn(self) -> None:
        if os.geteuid() == 0:
            remedy = (
                "start it as a user of its own: whoever may submit a run would have the whole "
                "machine"
            )
            self._log.warning("worker.runs_as_root", remedy=remedy)

    def _listen(self, answer: RegistrationAnswer) -> int:
        options = self._options
        task = DispatchTask(
            DispatchTaskSettings(
                server=options.server,
                state_directory=options.state_directory,
                slots=options.slots,
                gpus=tuple(gpu.index for gpu in options.gpus),
            )
        )
        broker = choose_broker(options.broker, answer.broker_url)
        app = make_app(broker, answer.queue, task)
        signals.worker_ready.connect(_ignore_hang_up, weak=False)
        signals.worker_shutting_down.connect(self._note_signal, weak=False)
        for unusable in (signals.task_unknown, signals.task_rejected):
            unusable.connect(task.count_malformed, weak=False)
        self._log.info(
            "worker.listens", broker=mask_password(broker), queue=answer.queue, slots=options.slots
        )
        worker = app.Worker(
            hostname=f"{options.name}@{os.getpid()}",
            pool="prefork",
            concurrency=min(options.slots, _MAX_PROCESSES),
            optimization="fair",
            loglevel="WARNING",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            task_events=False,
        )
        worker.start()
        return int(worker.exitcode or 0)


def _ignore_hang_up(**_: object) -> None:
    """Ignores SIGHUP, at which Celery would restart the process."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _leave(_number: int, _frame: object) -> None:
    sys.exit(0)


def drain(state_directory: Path, seconds: float) -> bool:
    """Sends SIGTERM to every supervisor of a state directory; true once all have ended.

    Each then has its trainer save a snapshot and end. A second signal ends the wait.

    Args:
        state_directory: The worker's directory.
        seconds: Maximum time to wait.
    """
    signalled: set[str] = set()
    impatient = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: impatient.set())
    deadline = time.monotonic() + seconds
    while live := list_local_attempts(state_directory, time.time()).live:
        for attempt in live:
            supervisor = attempt.supervisor()
            if (
                attempt.attempt_id not in signalled
                and supervisor is not None
                and supervisor.send(signal.SIGTERM)
            ):
                signalled.add(attempt.attempt_id)
                get_logger(attempt_id=attempt.attempt_id).info("attempt.drains")
        if impatient.is_set() or time.monotonic() > deadline:
            get_logger().warning(
                "worker.left_attempts", attempts=[attempt.attempt_id for attempt in live]
            )
            return False
        time.sleep(0.1)
    return True
