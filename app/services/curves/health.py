"""Judges trainings by their curves and evaluations, and keeps the findings for lists."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from app.db.engine import Database, Session
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import RunRow
from app.db.repositories import blocks as rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import findings as finding_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import queried_runs
from app.domain.principal import Principal
from app.domain.queue.start_order import ExperimentKey
from app.metrics.health import rules
from app.metrics.health.records import HealthSeries, TrainingRecord
from app.services import offers
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
    registered_limit: int | None
    """Episode limit of the environment as workers register it, where a rule needs it."""
    curves: LoadedCurves
    evaluations: Sequence[EvaluationRow]
    env_steps: int


async def judge(database: Database, principal: Principal, run_id: str) -> HealthView:
    """Returns the findings about a run as it is now.

    Raises:
        NotFoundError: If the project has no such run.
    """
    async with database.read() as session:
        (loaded,) = await _load_all(session, [await runs.find(session, principal, run_id)])
    return await asyncio.to_thread(_judge, loaded)


async def judge_and_keep(database: Database, run_ids: Collection[str]) -> set[str]:
    """Judges runs anew and replaces their findings, with an event for each run whose differ.

    Runs that were removed, or that another process judged meanwhile, are left as they are. All are
    read in one transaction and written in another one.

    Returns:
        The runs whose findings differ from those before.
    """
    async with database.read() as session:
        versions = await finding_rows.load_versions(session, run_ids)
        loaded = await _load_all(session, await experiment_rows.list_runs(session, versions))
    if not loaded:
        return set()
    judged = await asyncio.to_thread(lambda: [_judge(one) for one in loaded])
    async with database.write() as session:
        return await _keep(session, {one.run_id: one.findings for one in judged}, versions)


async def _keep(
    session: Session, judged: Mapping[str, Sequence[FindingView]], versions: Mapping[str, int]
) -> set[str]:
    marked = await finding_rows.mark_judged(
        session, {run_id: versions[run_id] for run_id in judged}
    )
    before = await finding_rows.load(session, marked)
    changed = {
        run_id: [one.model_dump(mode="json") for one in judged[run_id]]
        for run_id in sorted(marked)
        if [build_finding_view(row) for row in before.get(run_id, ())] != judged[run_id]
    }
    for run in await experiment_rows.list_runs(session, changed) if changed else ():
        await finding_rows.replace(session, run.id, changed[run.id])
        run_events.append_run_event(session, run, {"findings": changed[run.id]})
    return set(changed)


async def _load_all(session: Session, found: Sequence[RunRow]) -> list[_Loaded]:
    """Returns what the rules need of some runs."""
    keys = {ExperimentKey(run.project_id, run.experiment_id) for run in found}
    experiments = await experiment_rows.load_by_keys(session, keys) if keys else {}
    definitions = {
        key: read_definition(experiment).model_dump(mode="json")
        for key, experiment in experiments.items()
    }
    evaluations: dict[str, list[EvaluationRow]] = {run.id: [] for run in found}
    for row in await rows.list_evaluations(session, list(evaluations), superseded=False):
        evaluations[row.run_id].append(row)
    return [
        await _load(
            session,
            run,
            definitions[ExperimentKey(run.project_id, run.experiment_id)],
            evaluations[run.id],
        )
        for run in found
    ]


async def _load(
    session: Session,
    run: RunRow,
    definition: dict[str, Any],
    evaluations: Sequence[EvaluationRow],
) -> _Loaded:
    known = sorted(await queried_runs.list_names(session, [run.id]))
    names = rules.list_series(known)[:MAX_SERIES]
    request = BucketRequest(keys=[(run.id, name) for name in names], buckets=BUCKETS)
    return _Loaded(
        run.id,
        definition,
        await _find_episode_limit(session, run, definition, names),
        await buckets.load(session, request),
        evaluations,
        run.env_step,
    )


async def _find_episode_limit(
    session: Session, run: RunRow, definition: dict[str, Any], names: Sequence[str]
) -> int | None:
    """Returns the registered episode limit of a run's environment.

    `None` where no rule needs it: the catalogues of workers are large.
    """
    discount = (definition.get("agent") or {}).get("gamma")
    is_discounted = discount is None or discount < 1
    if run.job_id is None or (is_discounted and rules.RETURNS in names):
        return None
    env_id = (definition.get("env") or {}).get("id")
    job = await job_rows.find_by_id(session, run.job_id)
    if job is None or env_id is None:
        return None
    return await offers.find_episode_limit(session, job.pool, env_id)


def _judge(loaded: _Loaded) -> HealthView:
    found = buckets.reduce(loaded.curves)
    series = {key[1]: one for row, key in enumerate(found.keys) if (one := _read(found, row))}
    record = TrainingRecord.from_definition(
        loaded.definition,
        series,
        _read_evaluations(loaded.evaluations),
        loaded.env_steps,
        loaded.registered_limit,
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
