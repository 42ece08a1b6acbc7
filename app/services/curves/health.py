"""Judges the training of a run by its curves and evaluations."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import orjson

from app.db.engine import Database
from app.db.models.curves import EvaluationRow
from app.db.repositories import blocks as rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import queried_runs
from app.domain.principal import Principal
from app.metrics.health import rules
from app.metrics.health.records import HealthSeries, TrainingRecord
from app.services.curves import buckets
from app.services.curves.buckets import BucketRequest, CurveBuckets, LoadedCurves
from app.services.runs import runs
from app.services.views.experiments import read_definition
from palestra.contract.health import FindingView, HealthView
from palestra.contract.names import EvaluationSource

BUCKETS: Final = 400
"""Most buckets of a series that the rules see."""
MAX_SERIES: Final = 100
"""Largest number of series that are read."""


async def judge(database: Database, principal: Principal, run_id: str) -> HealthView:
    """Returns the findings about a run.

    Raises:
        NotFoundError: If the project has no such run.
    """
    async with database.read() as session:
        run = await runs.find(session, principal, run_id)
        experiment = await experiment_rows.find(session, run.project_id, run.experiment_id)
        assert experiment is not None
        definition = read_definition(experiment).model_dump(mode="json")
        known = sorted(await queried_runs.list_names(session, [run.id]))
        names = rules.list_series(known)[:MAX_SERIES]
        request = BucketRequest(keys=[(run.id, name) for name in names], buckets=BUCKETS)
        loaded = await buckets.load(session, request)
        evaluations = await rows.list_evaluations(session, [run.id], superseded=False)
        env_steps = run.env_step
    return await asyncio.to_thread(_judge, run_id, definition, loaded, evaluations, env_steps)


def _judge(
    run_id: str,
    definition: dict[str, Any],
    loaded: LoadedCurves,
    evaluations: Sequence[EvaluationRow],
    env_steps: int,
) -> HealthView:
    found = buckets.reduce(loaded)
    series = {key[1]: one for row, key in enumerate(found.keys) if (one := _read(found, row))}
    steps, means = _read_evaluations(evaluations)
    agent, env = definition.get("agent") or {}, definition.get("env") or {}
    record = TrainingRecord(
        series=series,
        evaluation_steps=steps,
        evaluation_means=means,
        env_steps=env_steps,
        gamma=agent.get("gamma"),
        max_grad_norm=agent.get("max_grad_norm"),
        max_episode_steps=env.get("max_episode_steps"),
        entropy_bonus=agent.get("name") == "sac",
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
    return HealthView(run_id=run_id, findings=findings, series=sorted(series))


def _read(found: CurveBuckets, row: int) -> HealthSeries | None:
    """Returns the buckets of a series that hold a point; `None` if none does."""
    filled = np.flatnonzero(found.n[row])
    if not len(filled):
        return None
    return HealthSeries(
        env_step=found.grid.centres[filled].astype(np.float64),
        mean=found.mean[row][filled],
        min=found.min[row][filled],
        max=found.max[row][filled],
        nonfinite=found.nonfinite[row][filled],
    )


def _read_evaluations(evaluations: Sequence[EvaluationRow]) -> tuple[Any, Any]:
    source = EvaluationSource.EVALUATION.value
    points = sorted(
        (row.env_step, float(orjson.loads(row.body)["mean"]))
        for row in evaluations
        if row.source == source
    )
    steps = np.array([step for step, _ in points], np.int64)
    return steps, np.array([mean for _, mean in points], np.float64)
