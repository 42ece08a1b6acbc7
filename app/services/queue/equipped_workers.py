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
    """Returns the requirements of a job on its worker, apart from GPUs."""
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
    """Finds equipped workers; caches the needs of experiments, which never change.

    A worker's catalogue is read again after it registered again.
    """

    def __init__(self) -> None:
        self._needs: dict[str, Needs] = {}
        self._catalogues: dict[str, tuple[object, Mapping[str, Any]]] = {}
        self._has: dict[tuple[str, str, object], bool] = {}

    def add_needs(self, requirements: str, needs: Needs) -> None:
        """Tells what jobs with a key of requirements need, of which none may be stored yet."""
        self._needs[requirements] = needs

    async def find(
        self, session: Session, jobs: Collection[LoadedJob], workers: Sequence[WorkerSlots]
    ) -> dict[str, frozenset[str]]:
        """Returns the IDs of the equipped workers by key of requirements."""
        wanted = {loaded.job.requirements: loaded for loaded in jobs}
        await self._read_needs(session, wanted)
        await self._read_catalogues(session, workers)
        # What was deleted or moved since the jobs and the workers were read is left out.
        known = [worker for worker in workers if worker.worker_id in self._catalogues]
        return {
            key: frozenset(worker.worker_id for worker in known if self._is_equipped(key, worker))
            for key in wanted
            if key in self._needs
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
        if not missing:
            return
        jobs = {
            job.id: job
            for job in await job_rows.list_by_ids(session, [one.job.id for one in missing.values()])
        }
        keys = {one.job.experiment for one in missing.values()}
        experiments = await experiment_rows.load_by_keys(session, keys)
        for key, loaded in missing.items():
            job, experiment = jobs.get(loaded.job.id), experiments.get(loaded.job.experiment)
            if job is not None and experiment is not None:
                self._needs[key] = needs_of(job, experiment)

    async def _read_catalogues(self, session: Session, workers: Sequence[WorkerSlots]) -> None:
        outdated = [
            worker.worker_id
            for worker in workers
            if self._catalogues.get(worker.worker_id, (None,))[0] != worker.registered_at
        ]
        for row in await worker_rows.list_by_ids(session, outdated) if outdated else ():
            self._catalogues[row.id] = (row.registered_at, row.catalogue)
