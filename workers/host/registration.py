"""The worker's requests to the server: registration, and heartbeats with its attempts."""

import os
import platform
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

import palestra
from palestra import provenance
from palestra.backoff import Backoff
from palestra.contract.catalogue import Catalogue
from palestra.contract.registration import Registration, RegistrationAnswer, WorkerHeartbeat
from palestra.contract.work_order import WORK_ORDER_VERSIONS
from palestra.python_command import build_python_command
from palestra.telemetry.transport import open_client
from workers.host.adoption import Adopter
from workers.host.enrolment import Enrolment
from workers.host.options import BusyError, UsageError, WorkerOptions
from workers.host.slots import Slots
from workers.ipc.attempt_directory import AttemptDirectory, attempts_under
from workers.ipc.json_log import LEFT_OUT, get_logger
from workers.ipc.process_tree import boot_id, kill_tree, python_environment
from workers.ipc.server_api import RefusedError, ServerUnreachableError, WorkerApi

TICK_SECONDS: Final = 0.25
_STARTING_SECONDS: Final = 60.0
"""Age up to which an attempt without a supervisor's pid file counts as starting."""
_KEEP_SECONDS: Final = 7 * 86_400.0
"""Seconds for which spool and logs of an ended attempt are kept on this machine."""
_CATALOGUE_SECONDS: Final = 120.0
_NOT_FOUND: Final = 404
_UNAUTHENTICATED: Final = 401
_NAME_TAKEN: Final = "worker_name_taken"


@dataclass(frozen=True, slots=True)
class LocalAttempts:
    """The attempts in this worker's state directory that are not released or reported as dead."""

    live: tuple[AttemptDirectory, ...]
    dead: tuple[AttemptDirectory, ...]
    orphaned: tuple[AttemptDirectory, ...] = ()
    """Attempts without a supervisor whose trainer has ended, with results to be uploaded."""


class WorkerHost:
    """Registers the worker, sends its heartbeats and adopts orphaned attempts.

    Args:
        options: The options of the command line.
        stop: Set to end `run` and every wait.
        on_registered_again: Called after the worker was registered anew while it ran: its queue and
            its password of the broker are others.
    """

    def __init__(
        self,
        options: WorkerOptions,
        stop: threading.Event,
        on_registered_again: Callable[[], None] = lambda: None,
    ) -> None:
        self._options = options
        self._stop = stop
        self._on_registered_again = on_registered_again
        self._log = get_logger()
        self._slots = Slots(options.state_directory, options.slots)
        self._enrolment = Enrolment.load_or_create(options.state_directory, options.name)
        self._api = WorkerApi(open_client(options.server, self._enrolment.secret or options.token))
        self._adopter = Adopter(options.server, self._slots)
        self._registration: Registration | None = None
        self._answer: RegistrationAnswer | None = None
        self._drain_reason: str | None = None
        """Why the server made the worker drain, as of the latest heartbeat."""

    @property
    def answer(self) -> RegistrationAnswer:
        """The answer to the latest registration."""
        assert self._answer is not None
        return self._answer

    @property
    def worker_id(self) -> str:
        """The worker's ID on the server."""
        return self.answer.worker_id

    def register(self) -> RegistrationAnswer:
        """Registers the worker; retries until the server answers, and logs why it waits.

        Raises:
            BusyError: If another worker has the name.
            UsageError: If the server refuses this worker permanently, or the worker was stopped
                before the server answered.
        """
        self._registration = describe(self._options)
        backoff = Backoff(self._stop)
        while not self._stop.is_set():
            try:
                self._answer = self._enrol_or_return(self._registration)
            except ServerUnreachableError as error:
                if backoff.failures in {0, 5} or backoff.failures % 20 == 0:
                    self._log.warning(
                        "worker.waits_for_server", server=self._options.server, reason=str(error)
                    )
                backoff.wait(error.wait)
            except RefusedError as refusal:
                kind = BusyError if refusal.code == _NAME_TAKEN else UsageError
                raise kind(f"the server refused this worker: {refusal}") from refusal
            else:
                self._log.info(
                    "worker.registered", worker_id=self._answer.worker_id, queue=self._answer.queue
                )
                return self._answer
        raise UsageError("stopped before the server answered")

    def _enrol_or_return(self, registration: Registration) -> RegistrationAnswer:
        """Registers with the worker's secret if it is valid, else enrols with the token."""
        if self._enrolment.secret:
            try:
                return self._api.register(registration)
            except RefusedError as refusal:
                if refusal.status != _UNAUTHENTICATED:
                    raise
                self._log.warning("worker.secret_refused", remedy="it enrols again with its token")
                self._enrolment = Enrolment.begin(self._options.state_directory, self._options.name)
        enrolment = registration.model_copy(update={"enrolment": self._enrolment.number})
        answer = WorkerApi(open_client(self._options.server, self._options.token)).register(
            enrolment
        )
        if answer.secret is None:
            raise ServerUnreachableError("the server returned no secret: it has another version")
        self._enrolment = self._enrolment.record_answer(
            self._options.state_directory, answer.worker_id, answer.secret
        )
        self._api = WorkerApi(open_client(self._options.server, answer.secret))
        return answer

    def run(self) -> None:
        """Sends heartbeats until stopped, and one at once when an attempt's supervisor has died."""
        assert self._answer is not None
        due = 0.0
        while not self._stop.is_set():
            attempts = list_local_attempts(self._options.state_directory, time.time())
            if time.monotonic() >= due or attempts.dead:
                self._end_leftover_processes(attempts.dead)
                asked = self._send_heartbeat(attempts)
                due = time.monotonic() + max(asked, self._answer.heartbeat_seconds)
            self._adopter.adopt(attempts.orphaned, self._api, self.worker_id)
            self._stop.wait(TICK_SECONDS if not attempts.dead else 1.0)

    def _send_heartbeat(self, attempts: LocalAttempts) -> float:
        """Sends one heartbeat; returns the minimum seconds until the next one."""
        heartbeat = WorkerHeartbeat(
            live_attempts=tuple(
                attempt.attempt_id for attempt in (*attempts.live, *attempts.orphaned)
            ),
            dead_attempts=tuple(attempt.attempt_id for attempt in attempts.dead),
            busy_slots=self._slots.busy_indices(),
            wall=time.time(),
        )
        try:
            answer = self._api.heartbeat(self.worker_id, heartbeat)
        except ServerUnreachableError as error:
            self._log.warning("heartbeat.unreachable", reason=str(error))
            return error.wait
        except RefusedError as refusal:
            self._log.warning("heartbeat.refused", reason=str(refusal))
            if refusal.status in {_NOT_FOUND, _UNAUTHENTICATED}:
                self._register_again()
            return 0.0
        if answer.drain_reason != self._drain_reason:
            self._drain_reason = answer.drain_reason
            if answer.drain_reason is not None:
                self._log.error("worker.drains", reason=answer.drain_reason)
        if answer.secret is not None and answer.secret != self._enrolment.secret:
            self._take_secret(answer.secret)
        for attempt in attempts.dead:
            attempt.reported_dead.touch()
            self._log.info("attempt.reported_dead", attempt_id=attempt.attempt_id)
        return 0.0

    def _take_secret(self, secret: str) -> None:
        """Replaces the worker's secret: kept in the state directory first, then used.

        While it cannot be kept, the present secret stays in use; each heartbeat brings the new one.
        """
        try:
            self._enrolment = self._enrolment.record_answer(
                self._options.state_directory, self.worker_id, secret
            )
        except OSError as error:
            self._log.warning("worker.secret_not_kept", reason=str(error))
            return
        self._api = WorkerApi(open_client(self._options.server, secret))
        self._log.info("worker.secret_rotated")

    def _register_again(self) -> None:
        assert self._registration is not None
        try:
            self._answer = self._enrol_or_return(self._registration)
        except (ServerUnreachableError, RefusedError) as error:
            self._log.warning("worker.not_registered_again", reason=str(error))
        else:
            self._on_registered_again()

    def _end_leftover_processes(self, dead: tuple[AttemptDirectory, ...]) -> None:
        """Kills the remaining processes of attempts before they are reported as dead."""
        for attempt in dead:
            trainer = attempt.trainer()
            session = trainer.pid if trainer is not None and trainer.is_alive() else None
            if not kill_tree(attempt.mark, session):
                self._log.error("attempt.not_killed", attempt_id=attempt.attempt_id)


def list_local_attempts(state_directory: Path, now: float) -> LocalAttempts:
    """Returns the attempts in a state directory by whether they have a supervisor.

    Deletes the directories of attempts that ended long ago.

    The directory of an attempt with results that the server refused is never deleted, since it
    holds their only copy.
    """
    live: list[AttemptDirectory] = []
    dead: list[AttemptDirectory] = []
    orphaned: list[AttemptDirectory] = []
    for attempt in attempts_under(state_directory):
        mark = next(
            (mark for mark in (attempt.released, attempt.reported_dead) if mark.exists()), None
        )
        if mark is not None:
            if now - mark.stat().st_mtime > _KEEP_SECONDS and not attempt.kept.exists():
                shutil.rmtree(attempt.root, ignore_errors=True)
        elif is_supervised(attempt, now):
            live.append(attempt)
        else:
            (orphaned if attempt.has_ended() else dead).append(attempt)
    return LocalAttempts(tuple(live), tuple(dead), tuple(orphaned))


def is_supervised(attempt: AttemptDirectory, now: float) -> bool:
    """Returns whether an attempt's supervisor is running or being started."""
    supervisor = attempt.supervisor()
    if supervisor is not None:
        return supervisor.is_alive()
    return now - attempt.root.stat().st_mtime < _STARTING_SECONDS


def read_catalogue(directory: Path) -> Catalogue | None:
    """Lists the parts and environments of this machine in a subprocess; `None` if that fails.

    The subprocess imports Gymnasium, which the worker must not.

    Args:
        directory: Working directory of the subprocess. Must differ from the worker's own
            working directory, from which trainers cannot import modules.
    """
    command = build_python_command("workers.assembly.catalogue")
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            capture_output=True,
            timeout=_CATALOGUE_SECONDS,
            check=True,
            env=python_environment(os.environ),
            cwd=directory,
        )
        for line in done.stderr.decode("utf-8", "replace").splitlines():
            if line.startswith(LEFT_OUT):
                get_logger().warning("catalogue.left_out", part=line.removeprefix(LEFT_OUT))
        return Catalogue.model_validate_json(done.stdout)
    except (OSError, subprocess.SubprocessError, ValidationError):
        return None


def describe(options: WorkerOptions) -> Registration:
    """Builds the worker's registration."""
    catalogue = read_catalogue(options.state_directory)
    if catalogue is None:
        get_logger().warning(
            "catalogue.failed", remedy="python -m workers.assembly.catalogue tells why"
        )
    return Registration(
        name=options.name,
        pool=options.pool,
        host=platform.node()[:64] or "unknown",
        boot_id=boot_id(),
        pid=os.getpid(),
        slots=options.slots,
        takes_several_slots=True,
        gpus=options.gpus,
        work_order_versions=WORK_ORDER_VERSIONS,
        version=palestra.__version__,
        hardware=provenance.describe_hardware(),
        packages=provenance.list_packages(),
        catalogue=catalogue or Catalogue(),
    )
