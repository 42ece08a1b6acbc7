"""Views of workers and their slots, many at a time: a list costs a fixed number of queries."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.db.engine import Session
from app.db.models.jobs import AttemptRow
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import workers as worker_rows
from app.domain.derived_states import worker_state
from app.services.views.columns import columns_of, view_of
from palestra.contract.resources import (
    SlotView,
    WorkerView,
)
from palestra.contract.states import AttemptState


async def worker_views(session: Session, rows: Sequence[WorkerRow]) -> list[WorkerView]:
    """Returns the views of workers."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    silence = await worker_rows.silence(session, ids)
    live = await attempt_rows.live_on(session, ids)
    carried = await attempt_rows.runs_of(session, [attempt.id for attempt in live])
    return [
        view_of(
            WorkerView,
            {
                **columns_of(
                    row,
                    "id",
                    "name",
                    "pool",
                    "host",
                    "version",
                    "gpus",
                    "registered_at",
                    "last_heartbeat_at",
                ),
                "state": worker_state(silence[row.id], row.silent_seconds, draining=row.draining),
                "slots": _slots(
                    row, [attempt for attempt in live if attempt.worker_id == row.id], carried
                ),
            },
        )
        for row in rows
    ]


def _slots(
    worker: WorkerRow, live: Sequence[AttemptRow], carried: Mapping[str, Sequence[Any]]
) -> list[SlotView]:
    taken = {attempt.slot: attempt for attempt in live if attempt.state != AttemptState.ENDED}
    slots = []
    for index in range(max([worker.slots, *(slot + 1 for slot in taken)])):
        attempt = taken.get(index)
        run_ids = [] if attempt is None else [run.run_id for run in carried[attempt.id]]
        slots.append(
            SlotView(
                index=index,
                attempt_id=attempt and attempt.id,
                job_id=attempt and attempt.job_id,
                run_ids=run_ids,
            )
        )
    return slots
