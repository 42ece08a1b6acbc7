"""Views of workers and their slots, many at a time: a list costs a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.db.engine import Session
from app.db.models.jobs import AttemptRow
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import workers as worker_rows
from app.domain.derived_states import derive_worker_state
from app.domain.principal import Principal
from app.services.views.columns import build_view
from palestra.contract.permissions import Permission
from palestra.contract.pools import SecretRotation, SlotView, WorkerView

TOLERATED_SKEW: Final = 300.0
"""Seconds by which the clocks of worker and server may differ."""
_ROTATION_SINCE: Final = 2
"""Version of the contract since which workers take a new secret with a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReader:
    """The rights of a caller on the jobs in slots."""

    project_ids: frozenset[str] = frozenset()
    """Projects whose jobs it may read."""
    is_manager: bool = False
    """Whether it manages pools: it sees the ID, user and project of every job."""

    @classmethod
    def from_principal(cls, principal: Principal) -> "SlotReader":
        """Returns the rights of a caller."""
        return cls(
            project_ids=principal.projects_with(Permission.PROJECT_READ),
            is_manager=principal.permits(Permission.SERVER_POOLS),
        )


EVERYBODY: Final = SlotReader()
"""Sees which slots are busy."""


async def build_worker_views(
    session: Session, rows: Sequence[WorkerRow], reader: SlotReader
) -> list[WorkerView]:
    """Returns the views of workers that a reader may see."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    silence = await worker_rows.measure_silence(session, ids)
    live = await attempt_rows.list_live_for_workers(session, ids)
    in_use = await _group_slots_in_use(session, rows, live, reader)
    return [
        build_view(
            WorkerView,
            row,
            has_wrong_clock=abs(row.clock_skew_seconds or 0.0) > TOLERATED_SKEW,
            state=derive_worker_state(silence[row.id], row.silent_seconds, draining=row.draining),
            secret_rotation=_rotation(row),
            slots=_slots(
                row,
                [slot for one in live if one.worker_id == row.id for slot in in_use[one.id]],
            ),
        )
        for row in rows
    ]


def _rotation(worker: WorkerRow) -> SecretRotation | None:
    if worker.rotation_nonce is None:
        return None
    return "pending" if worker.contract_version >= _ROTATION_SINCE else "unsupported"


async def _group_slots_in_use(
    session: Session, workers: Sequence[WorkerRow], live: Sequence[AttemptRow], reader: SlotReader
) -> dict[str, list[SlotView]]:
    """Returns the slots of each live attempt of the given workers, by attempt ID."""
    ids = [attempt.id for attempt in live]
    own = {attempt.id for attempt in live if attempt.project_id in reader.project_ids}
    pools = await pool_rows.list_by_names(session, {worker.pool for worker in workers})
    named = {pool.name for pool in pools if pool.shows_names} if reader != EVERYBODY else set()
    of_worker = {worker.id: worker.pool for worker in workers}
    carried = await attempt_rows.load_runs(session, own)
    submitters = {} if reader == EVERYBODY else await attempt_rows.load_submitters(session, ids)
    found = {}
    for attempt in live:
        is_own = attempt.id in own
        shows = is_own or reader.is_manager or of_worker[attempt.worker_id] in named
        user, project = submitters.get(attempt.id, (None, None)) if shows else (None, None)
        first = SlotView(
            index=attempt.slot,
            busy=True,
            attempt_id=attempt.id if is_own else None,
            job_id=attempt.job_id if is_own or reader.is_manager else None,
            run_ids=[run.run_id for run in carried[attempt.id]] if is_own else [],
            user=user,
            project=project,
        )
        others = attempt.further_slots or ()
        found[attempt.id] = [first, *(first.model_copy(update={"index": n}) for n in others)]
    return found


def _slots(worker: WorkerRow, occupied: Sequence[SlotView]) -> list[SlotView]:
    taken = {slot.index: slot for slot in occupied}
    count = max([worker.slots, *(index + 1 for index in taken)])
    return [
        taken.get(index) or SlotView(index=index, attempt_id=None, job_id=None, run_ids=[])
        for index in range(count)
    ]
