"""The only Celery task: handles a dispatch message.

It claims the job, starts a supervisor and returns; no Celery process waits for a training.

A dispatch message may be lost or repeated. An invalid one is dropped and counted; the dispatcher
sends another one for a job that still waits.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from palestra.contract.names import DISPATCH_TASK
from palestra.contract.work_order import Claim, ClaimAnswer, DispatchMessage, Release
from palestra.telemetry.transport import open_client
from workers.host.counters import Counters
from workers.host.enrolment import Enrolment
from workers.host.kept_connection import KeptConnection
from workers.host.slots import HeldSlots, Slots, gpus_of_slots
from workers.host.supervisor_start import SupervisorStart, SupervisorStartError, start_supervisor
from workers.ipc import full_disk
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.credentials import Credentials
from workers.ipc.failed_start import report_failed_start
from workers.ipc.json_log import get_logger
from workers.ipc.server_api import AttemptApi, RefusedError, ServerUnreachableError, WorkerApi

_SLOT_SECONDS: Final = 20.0
"""Seconds for which to wait for free slots: an attempt's processes end after its report.

While they are not free, this worker cannot answer other dispatch messages.
"""
_CLAIM_PAUSE_SECONDS: Final = 0.5
_UNAUTHENTICATED: Final = 401


class DispatchOutcome(StrEnum):
    """The outcome of a dispatch message; the name of a worker's counter."""

    STARTED = "started"
    MALFORMED = "malformed"
    NO_SLOT = "no_slot"
    NOT_CLAIMED = "not_claimed"
    SLOT_BUSY = "slot_busy"
    """The server has a live attempt for slots that are free on this machine, and no others are.

    The next heartbeat corrects whichever of the two is out of date.
    """
    SERVER_AWAY = "server_away"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchTaskSettings:
    """Server, state directory, slots and GPUs that a dispatch task uses.

    They are passed to the Celery pool's processes by forking.
    """

    server: str
    state_directory: Path
    """Directory with the worker's secret, which is read for each message since it may change."""
    slots: int
    gpus: tuple[int, ...] = ()
    claim_seconds: float = 15.0
    """Seconds for which a claim is repeated while no answer arrives.

    The server answers a repeated claim with the same lease.
    """


class _NotClaimed(NamedTuple):
    """Why a claim failed."""

    outcome: DispatchOutcome
    busy_slots: frozenset[int] = frozenset()
    """Slots that are busy according to the server."""


class DispatchTask:
    """Handles dispatch messages; the body of the task `palestra.ring`."""

    name: Final = DISPATCH_TASK

    def __init__(self, settings: DispatchTaskSettings) -> None:
        self._settings = settings
        self._slots = Slots(settings.state_directory, settings.slots)
        self._counters = Counters(settings.state_directory)
        self._connection = KeptConnection(settings.server)

    def __call__(self, *arguments: object, **keywords: object) -> None:
        """Handles one dispatch message. Never raises, since the message is acknowledged already."""
        try:
            answered = self.answer(arguments, keywords)
        except Exception:  # noqa: BLE001 - a root: nothing may reach Celery
            get_logger().exception("dispatch.failed")
            answered = DispatchOutcome.NOT_STARTED
        self._counters.count(answered)

    def count_malformed(self, **_: object) -> None:
        """Counts a message that could not be decoded."""
        self._counters.count(DispatchOutcome.MALFORMED)

    def answer(
        self, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> DispatchOutcome:
        """Handles one dispatch message and returns its outcome."""
        message = _read(arguments, keywords)
        if message is None:
            get_logger().warning("dispatch.malformed")
            return DispatchOutcome.MALFORMED
        # The server dispatches the next job as soon as an attempt reports its end, a moment before
        # the attempt's last process has ended and released the slot's lock. A worker that gave up
        # at once would leave the slot idle until the message is sent again.
        held = self._slots.take(message.slots, patience=_SLOT_SECONDS)
        answered, refused = DispatchOutcome.NO_SLOT, frozenset[int]()
        while held is not None:
            try:
                answer = self._try_claim(message, held)
                if isinstance(answer, ClaimAnswer):
                    return self._start(answer, held)
            finally:
                held.release()
            answered = answer.outcome
            if answered is not DispatchOutcome.SLOT_BUSY:
                break
            refused |= answer.busy_slots or frozenset(held.indices)
            held = self._slots.take(message.slots, besides=refused)
        return answered

    def _try_claim(self, message: DispatchMessage, held: HeldSlots) -> ClaimAnswer | _NotClaimed:
        worker = Enrolment.read(self._settings.state_directory)
        if worker is None or not worker.secret:
            get_logger().error("dispatch.no_secret", job_id=message.job_id)
            return _NotClaimed(DispatchOutcome.NOT_CLAIMED)
        claim = Claim(
            job_id=message.job_id,
            expected_attempt=message.expected_attempt,
            worker_id=worker.worker_id,
            slot=held.indices[0],
            further_slots=held.indices[1:],
        )
        try:
            return self._claim(claim, worker.secret)
        except RefusedError as refusal:
            get_logger().info(
                "dispatch.not_claimed",
                job_id=message.job_id,
                slots=held.indices,
                code=refusal.code,
            )
            if refusal.code == DispatchOutcome.SLOT_BUSY:
                return _NotClaimed(DispatchOutcome.SLOT_BUSY, refusal.busy_slots)
            return _NotClaimed(DispatchOutcome.NOT_CLAIMED)
        except ServerUnreachableError as error:
            get_logger().warning("dispatch.server_away", job_id=message.job_id, reason=str(error))
            return _NotClaimed(DispatchOutcome.SERVER_AWAY)

    def _claim(self, claim: Claim, secret: str) -> ClaimAnswer:
        """Sends a claim to the server and returns the answer.

        Repeats the claim for some seconds if the server is unreachable or its answer was lost, and
        with the worker's new secret if that was rotated in between.
        """
        end = time.monotonic() + self._settings.claim_seconds
        while True:
            try:
                return WorkerApi(self._connection.get(secret)).claim(claim)
            except ServerUnreachableError as error:
                if time.monotonic() > end:
                    raise
                time.sleep(max(_CLAIM_PAUSE_SECONDS, min(error.wait, 2.0)))
            except RefusedError as refusal:
                present = Enrolment.read(self._settings.state_directory)
                if (
                    refusal.status != _UNAUTHENTICATED
                    or present is None
                    or (present.secret in {"", secret})
                ):
                    raise
                secret = present.secret

    def _start(self, answer: ClaimAnswer, held: HeldSlots) -> DispatchOutcome:
        order = answer.work_order
        directory = AttemptDirectory(self._settings.state_directory / "attempts" / order.attempt_id)
        credentials = Credentials(
            server=self._settings.server, token=answer.token, renew_seconds=answer.renew_seconds
        )
        gpus = gpus_of_slots(held.indices, self._settings.slots, self._settings.gpus)
        try:
            directory.create(order.model_dump_json().encode())
            start_supervisor(
                SupervisorStart(directory=directory, credentials=credentials, slots=held, gpus=gpus)
            )
        except (OSError, SupervisorStartError) as error:
            get_logger(attempt_id=order.attempt_id).error("attempt.not_started", reason=str(error))
            self._give_back(answer, error)
            return DispatchOutcome.NOT_STARTED
        get_logger(attempt_id=order.attempt_id).info(
            "attempt.started", job_id=order.job_id, slots=held.indices, gpus=gpus
        )
        return DispatchOutcome.STARTED

    def _give_back(self, answer: ClaimAnswer, error: Exception) -> None:
        """Releases an attempt that could not be started.

        If the release fails, the attempt ends when its lease expires.
        """
        is_full = any(
            full_disk.is_full_error(one) for one in (error, error.__cause__) if one is not None
        )
        report = report_failed_start(f"{full_disk.NO_SPACE} ({error})" if is_full else str(error))
        try:
            with open_client(self._settings.server, answer.token) as client:
                AttemptApi(client, answer.work_order.attempt_id).release(
                    Release(report=report, last_seq=0)
                )
        except (RefusedError, ServerUnreachableError) as refusal:
            get_logger(attempt_id=answer.work_order.attempt_id).warning(
                "attempt.not_given_back", reason=str(refusal)
            )


def _read(arguments: Sequence[object], keywords: Mapping[str, object]) -> DispatchMessage | None:
    if arguments:
        return None
    try:
        return DispatchMessage.model_validate_json(json.dumps(keywords))
    except (ValidationError, TypeError, ValueError):
        return None
