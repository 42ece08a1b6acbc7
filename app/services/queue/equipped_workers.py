"""Which workers have the code, the agent, the environment and the formats that a job needs."""

import json
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
from palestra.contract.definition import SCHEMA_VERSION
from palestra.contract.names import Schedule
from palestra.contract.upgrade import load_definition

_READABLE: Final = frozenset({2, SCHEMA_VERSION})
_MAX_NEEDS: Final = 10_000
"""Requirements that are kept; all are read anew once there are more."""


def needs_of(job: JobRow, experiment: ExperimentRow) -> Needs:
    """Returns the requirements of a job on its worker, apart from GPUs."""
    named = (job.evaluate or {}).get("formats") if job.schedule == Schedule.EXPORT else None
    return Needs(
        kind=experiment.kind,
        environment=experiment.env,
        agent=experiment.agent,
        code=experiment.code,
        formats=frozenset(named or _list_formats(experiment.definition)),
        any_version=job.allow_code_change,
    )


def _list_formats(definition: str) -> Sequence[str]:
    """Returns the export formats of a stored definition.

    Of the schema versions that have them as today they are read without validating all of it: a
    decision may reach hundreds of experiments.
    """
    document = json.loads(definition)
    if document.get("schema_version") in _READABLE and "formats" in document.get("export", ()):
        formats: Sequence[str] = document["export"]["formats"]
        return formats
    return load_definition(definition).export.formats


class _Numbers:
    """Gives equal documents the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, document: Any) -> int:
        """Returns the number of a JSON document."""
        text = json.dumps(document, sort_keys=True)
        return self._numbers.setdefault(text, len(self._numbers))


class EquippedWorkers:
    """Finds equipped workers; caches the needs of experiments, which never change.

    Most experiments need the same and most workers offer the same, so needs and catalogues are
    compared once for each pair that differs. A worker's catalogue is read again after it registered
    again.
    """

    def __init__(self) -> None:
        self._documents = _Numbers()
        self._needs: dict[str, int] = {}
        """Number of the needs by key of requirements."""
        self._needs_by_number: dict[int, Needs] = {}
        self._registered: dict[str, object] = {}
        """When each worker registered whose catalogue was read."""
        self._catalogues: dict[str, int] = {}
        """Number of the catalogue by worker ID."""
        self._catalogues_by_number: dict[int, Mapping[str, Any]] = {}
        self._has: dict[tuple[int, int], bool] = {}

    def add_needs(self, requirements: str, needs: Needs) -> None:
        """Tells what jobs with a key of requirements need, of which none may be stored yet."""
        number = self._documents.number(
            [
                [needs.kind, needs.environment, needs.agent, needs.code],
                [sorted(needs.formats), needs.any_version],
            ]
        )
        self._needs[requirements] = number
        self._needs_by_number[number] = needs

    async def find(
        self, session: Session, jobs: Collection[LoadedJob], workers: Sequence[WorkerSlots]
    ) -> dict[str, frozenset[str]]:
        """Returns the IDs of the equipped workers by key of requirements."""
        wanted = {loaded.job.requirements: loaded for loaded in jobs}
        await self._read_needs(session, wanted)
        await self._read_catalogues(session, workers)
        # What was deleted or moved since the jobs and the workers were read is left out.
        known: dict[int, list[str]] = {}
        for worker in workers:
            if (catalogue := self._catalogues.get(worker.worker_id)) is not None:
                known.setdefault(catalogue, []).append(worker.worker_id)
        by_key = {key: self._needs[key] for key in wanted if key in self._needs}
        equipped = {
            needs: frozenset(
                worker_id
                for catalogue, worker_ids in known.items()
                if self._is_equipped(needs, catalogue)
                for worker_id in worker_ids
            )
            for needs in set(by_key.values())
        }
        return {key: equipped[needs] for key, needs in by_key.items()}

    def _is_equipped(self, needs: int, catalogue: int) -> bool:
        key = (needs, catalogue)
        if key not in self._has:
            self._has[key] = equipment.has(
                self._catalogues_by_number[catalogue], self._needs_by_number[needs]
            )
        return self._has[key]

    async def _read_needs(self, session: Session, wanted: Mapping[str, LoadedJob]) -> None:
        if len(self._needs) > _MAX_NEEDS:
            self._needs.clear()
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
                self.add_needs(key, needs_of(job, experiment))

    async def _read_catalogues(self, session: Session, workers: Sequence[WorkerSlots]) -> None:
        outdated = [
            worker.worker_id
            for worker in workers
            if self._registered.get(worker.worker_id) != worker.registered_at
        ]
        for row in await worker_rows.list_by_ids(session, outdated) if outdated else ():
            number = self._documents.number(row.catalogue)
            self._registered[row.id] = row.registered_at
            self._catalogues[row.id] = number
            self._catalogues_by_number[number] = row.catalogue
