"""Attempts that write and the runs that they carry, read and locked as plain rows.

The ingest reads them for each batch: loading them as objects of the session would take longer than
all that it writes.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from sqlalchemy import or_, select

from app.db.engine import Session
from app.db.list_parameters import is_listed
from app.db.models.experiments import RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.prepared import Read, fetch_all
from palestra.contract.states import LIVE_ATTEMPT_STATES

# An IN list cannot be compiled before the other parameters are known.
_IS_LIVE: Final = or_(*(AttemptRow.state == state for state in LIVE_ATTEMPT_STATES))


@dataclass(slots=True)
class CarriedRun:
    """A run that an attempt carries, with the run's progress."""

    id: str
    project_id: str
    experiment_id: str
    fence: int
    """The attempt's fence of the run."""
    newest_fence: int
    """The fence of the run itself: a newer attempt trains the run if it is higher."""
    is_training: bool
    env_step: int
    update: int
    episode: int
    env_steps_per_second: float | None


@dataclass(slots=True)
class Writer:
    """An attempt, locked until the transaction ends."""

    id: str
    project_id: str
    job_id: str
    is_live: bool
    acked_seq: int
    runs: dict[str, CarriedRun] = field(default_factory=dict)
    """The locked runs by ID, in the order of their IDs; none of an attempt that has ended."""

    @property
    def is_superseded(self) -> bool:
        """Whether a newer attempt trains one of its runs."""
        return any(run.is_training and run.newest_fence != run.fence for run in self.runs.values())


async def lock(session: Session, attempt_ids: Collection[str]) -> dict[str, Writer]:
    """Returns those attempts that exist, by ID.

    Other ingests and claims wait for the attempts and their runs, which are locked in the order of
    their IDs. Both statements travel together; the second one sees the attempts as they are locked.
    """
    values = {"ids": attempt_ids}
    attempts, runs = await fetch_all(
        session, [Read(_select_attempts(), values), Read(_select_runs(), values)]
    )
    writers = {row.id: Writer(*row) for row in attempts}
    for attempt_id, *columns in runs:
        run = CarriedRun(*columns)
        writers[attempt_id].runs[run.id] = run
    return writers


@cache
def _select_attempts() -> Any:
    columns = AttemptRow.id, AttemptRow.project_id, AttemptRow.job_id
    query = select(*columns, _IS_LIVE.label("is_live"), AttemptRow.acked_seq)
    return query.where(is_listed(AttemptRow.id)).order_by(AttemptRow.id).with_for_update()


@cache
def _select_runs() -> Any:
    query = (
        select(
            AttemptRunRow.attempt_id,
            RunRow.id,
            RunRow.project_id,
            RunRow.experiment_id,
            AttemptRunRow.fence,
            RunRow.fence.label("newest_fence"),
            AttemptRunRow.training,
            RunRow.env_step,
            RunRow.update.label("update"),
            RunRow.episode,
            RunRow.env_steps_per_second,
        )
        .join(AttemptRow, AttemptRow.id == AttemptRunRow.attempt_id)
        .join(RunRow, RunRow.id == AttemptRunRow.run_id)
        .where(is_listed(AttemptRow.id), _IS_LIVE)
    )
    return query.order_by(RunRow.id).with_for_update(of=RunRow, key_share=True)
