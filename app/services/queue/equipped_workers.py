"""Which workers have the code, the agent, the environment and the formats that a job needs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import JobRow
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import workers as worker_rows
from app.db.repositories.assignments import WorkerSlots
from app.db.repositories.start_order import LoadedJob
from app.domain.queue import equipment
from app.domain.queue.equipment import Needs
from palestra.contract.names import Schedule
from palestra.contract.upgrade import load_definition

_MOST_NEEDS: Final = 10_000
"""Needs that are kept; all are read anew once there are more."""


def needs_of(job: JobRow, experiment: ExperimentRow) -> Needs:
    """Returns what a job needs of a worker beside GPUs."""
    named = (job.evaluate or {}).get("formats") if job.schedule == Schedule.EXPORT else None
    return Needs(
        kind=experiment.kind,
        environment=experiment.env,
        agent=experiment.agent,
        code=experiment.code,
        formats=frozenset(named or load_definition(experiment.definition).export.formats),
        any_version=job.allow_code_change,
    )


class EquippedWorkers:
    """Finds equipped workers; keeps what it read, since experiments never change.

    A worker's catalogue is read again after it registered again.
    """

    def __init__(self) -> None:
        self._needs: dict[str, Needs] = {}
        self._catalogues: dict[str, tuple[object, Mapping[str, Any]]] = {}
        self._has: dict[tuple[str, str, object], bool] = {}

    async def find(
        self, session: Session, jobs: Collection[LoadedJob], workers: Sequence[WorkerSlots]
    ) -> dict[str, frozenset[str]]:
        """Returns the IDs of the equipped workers by key of requirements."""
        wanted = {loaded.job.requirements: loaded for loaded in jobs}
        await self._read_needs(session, wanted)
        await self._read_catalogues(session, workers)
        return {
            key: frozenset(worker.worker_id for worker in workers if self._is_equipped(key, worker))
            for key in wanted
        }

    def _is_equipped(self, requirements: str, worker: WorkerSlots) -> bool:
        key = (requirements, worker.worker_id, worker.registered_at)
        if key not in self._has:
            catalogue = self._catalogues[worker.worker_id][1]
            self._has[key] = equipment.has(catalogue, self._needs[requirements])
        return self._has[key]

    async def _read_needs(self, session: Session, wanted: Mapping[str, LoadedJob]) -> None:
        if len(self._needs) > _MOST_NEEDS:
            self._needs.clear()
            self._has.clear()
        missing = {key: loaded for key, loaded in wanted.items() if key not in self._needs}
        jobs = {
            job.id: job
            for job in await job_rows.list_by_ids(session, [one.job.id for one in missing.values()])
        }
        for key, loaded in missing.items():
            project_id = loaded.job.group.project_id
            experiment = await experiment_rows.find(session, project_id, loaded.experiment_id)
            if experiment is not None and loaded.job.id in jobs:
                self._needs[key] = needs_of(jobs[loaded.job.id], experiment)

    async def _read_catalogues(self, session: Session, workers: Sequence[WorkerSlots]) -> None:
        outdated = [
            worker.worker_id
            for worker in workers
            if self._catalogues.get(worker.worker_id, (None,))[0] != worker.registered_at
        ]
        for row in await worker_rows.list_by_ids(session, outdated) if outdated else ():
            self._catalogues[row.id] = (row.registered_at, row.catalogue)
