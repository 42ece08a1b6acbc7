"""Adopts attempts whose supervisor died while it uploaded results.

The trainer has ended, and the results are stored only on this machine.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from palestra.contract.work_order import Adoption
from workers.host.slots import Slots
from workers.host.supervisor_start import SupervisorStart, SupervisorStartError, start_supervisor
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.credentials import Credentials
from workers.ipc.json_log import get_logger
from workers.ipc.process_tree import kill_tree
from workers.ipc.server_api import RefusedError, ServerUnreachableError, WorkerApi

_PAUSE_SECONDS: Final = 5.0
"""Time between two tries for one attempt."""


@dataclass(slots=True)
class Adopter:
    """Starts new supervisors, which upload the remaining results and release their attempts.

    Args:
        server: Base URL of the server.
        slots: The slots of this worker; an attempt holds its slots until its results are stored.
    """

    server: str
    slots: Slots
    _tried: dict[str, float] = field(default_factory=dict)

    def adopt(self, attempts: Sequence[AttemptDirectory], api: WorkerApi, worker_id: str) -> None:
        """Tries to adopt each attempt with the worker's secret.

        An attempt whose next try is not due yet is skipped.
        """
        for attempt in attempts:
            now = time.monotonic()
            if now - self._tried.get(attempt.attempt_id, -_PAUSE_SECONDS) >= _PAUSE_SECONDS:
                self._tried[attempt.attempt_id] = now
                self._adopt(attempt, api, worker_id)

    def _adopt(self, attempt: AttemptDirectory, api: WorkerApi, worker_id: str) -> None:
        log = get_logger(attempt_id=attempt.attempt_id)
        trainer = attempt.trainer()
        kill_tree(attempt.mark, trainer.pid if trainer is not None and trainer.is_alive() else None)
        try:
            answer = api.adopt(attempt.attempt_id, Adoption(worker_id=worker_id))
            held = self.slots.take_these((answer.slot, *answer.further_slots))
            if held is None:
                return
            try:
                credentials = Credentials(
                    server=self.server, token=answer.token, renew_seconds=answer.renew_seconds
                )
                start_supervisor(
                    SupervisorStart(directory=attempt, credentials=credentials, slots=held)
                )
            finally:
                held.release()
        except RefusedError as refusal:
            log.warning("attempt.not_wanted", reason=str(refusal))
            attempt.reported_dead.touch()
        except (ServerUnreachableError, SupervisorStartError, OSError) as error:
            log.warning("attempt.not_adopted", reason=str(error))
        else:
            log.info("attempt.adopted", slots=held.indices)
