"""Judges trainings by their curves and evaluations, and keeps the findings for lists."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from app.db.engine import Database, Session
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import RunRow
from app.db.repositories import blocks as rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import findings as finding_rows
from app.db.repositories import queried_runs
from app.domain.principal import Principal
from app.metrics.health import rules
from app.metrics.health.records import HealthSeries, TrainingRecord
from app.services.curves import buckets
from app.services.curves.buckets import BucketRequest, CurveBuckets, LoadedCurves
from app.services.runs import run_events, runs
from app.services.views.experiments import read_definition
from app.services.views.runs import build_finding_view
from palestra.contract.health import FindingView, HealthView
from palestra.contract.names import EvaluationSource

BUCKETS: Final = 400
"""Most buckets of a series that the rules see."""
MAX_SERIES: Final = 100
"""Largest number of series that are read."""


class _Loaded(NamedTuple):
    """What the rules need of a run."""

    run_id: str
    definition: dict[str, Any]
    curves: LoadedCurves
    evaluations: Sequence[EvaluationRow]
    env_steps: int


async def judge(database: Database, principal: Principal, run_id: str) -> HealthView:
    """Returns the findings about a run as it is now.

    Raises:
        NotFoundError: If the project has no such run.
    """
    async with database.read() as session:
        loaded = await _load(session, await runs.find(session, principal, run_id))
    return await asyncio.to_thread(_judge, loaded)


async def judge_and_keep(database: Database, run_id: str) -> bool:
    """Judges a run anew and replaces its findings, with an event if they differ.

    A run that was removed, or that another process judged meanwhile, is left as it is.

    Returns:
        Whether the findings differ from those before.
    """
    async with database.read() as session:
        version = await finding_rows.read_version(session, run_id)
        found = await experiment_rows.list_runs(session, [run_id])
        if version is None or not found:
            return False
        loaded = await _load(session, found[0])
    judged = await asyncio.to_thread(_judge, loaded)
    async with database.write() as session:
        return await _keep(session, judged, version)


async def _keep(session: Session, judged: HealthView, version: int) -> bool:
    run_id = judged.run_id
    if not await finding_rows.mark_judged(session, run_id, version):
        return False
    before = (await finding_rows.load(session, [run_id])).get(run_id, [])
    if [build_finding_view(row) for row in before] == judged.findings:
        return False
    content = [one.model_dump(mode="json") for one in judged.findings]
    await finding_rows.replace(session, run_id, content)
    (run,) = await experiment_rows.list_runs(session, [run_id])
    run_events.append_run_event(session, run, {"findings": content})
    return True


async def _load(session: Session, run: RunRow) -> _Loaded:
    experiment = await experiment_rows.find(session, run.project_id, run.experiment_id)
    assert experiment is not None
    known = sorted(await queried_runs.list_names(session, [run.id]))
    names = rules.list_series(known)[:MAX_SERIES]
    request = BucketRequest(keys=[(run.id, name) for name in names], buckets=BUCKETS)
    return _Loaded(
        run.id,
        read_definition(experiment).model_dump(mode="json"),
        await buckets.load(session, request),
        await rows.list_evaluations(session, [run.id], superseded=False),
        run.env_step,
    )


def _judge(loaded: _Loaded) -> HealthView:
    found = buckets.reduce(loaded.curves)
    series = {key[1]: one for row, key in enumerate(found.keys) if (one := _read(found, row))}
    record = TrainingRecord.from_definition(
        loaded.definition, series, _read_evaluations(loaded.evaluations), loaded.env_steps
    )
    findings = [
        FindingView(
            rule=one.rule,
            sentence=one.sentence,
            remedy=one.remedy,
            series=one.series,
            env_step=one.env_step,
        )
        for one in rules.find_faults(record)
    ]
    return HealthView(run_id=loaded.run_id, findings=findings, series=sorted(series))


def _read(found: CurveBuckets, row: int) -> HealthSeries | None:
    """Returns the buckets of a series that hold a point; `None` if none does."""
    statistics = found.mean[row], found.min[row], found.max[row]
    return HealthSeries.from_buckets(
        found.grid.centres, found.n[row], statistics, found.nonfinite[row]
    )


def _read_evaluations(evaluations: Sequence[EvaluationRow]) -> list[tuple[int, float]]:
    """Returns env_step and mean return of the evaluations of the training."""
    return [
        (row.env_step, float(orjson.loads(row.body)["mean"]))
        for row in evaluations
        if row.source == EvaluationSource.EVALUATION
    ]
