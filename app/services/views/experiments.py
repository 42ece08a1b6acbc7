"""Views of experiments, many at a time: a list costs a fixed number of queries."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.repositories import access as access_rows
from app.db.repositories import evaluations as evaluation_rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories.experiments import ExperimentKey, FailedRuns
from app.domain.derived_states import derive_experiment_state
from app.services.views.columns import build_view
from app.services.views.login_names import load_login_names
from palestra.contract.definition import Definition, SupervisedEvaluation
from palestra.contract.resources import (
    ExperimentView,
    ScoreView,
)
from palestra.contract.states import RunState
from palestra.contract.upgrade import load_definition

_FAILURES: Final = 5
"""Largest number of failure reasons in an experiment's view."""


async def build_experiment_views(
    session: Session, rows: Sequence[ExperimentRow]
) -> list[ExperimentView]:
    """Returns the views of experiments in the order of their rows."""
    if not rows:
        return []
    keys = [(row.project_id, row.id) for row in rows]
    counts = await experiment_rows.count_runs(session, keys)
    scores = await _scores(session, keys)
    failed = await experiment_rows.list_failures(session, keys, _FAILURES)
    names = await load_login_names(session, {row.created_by for row in rows})
    slugs = await access_rows.load_project_slugs(session, {row.project_id for row in rows})
    return [
        _experiment_view(
            row,
            counts[key],
            scores.get(key, []),
            failures=[one for one in failed if (one.project_id, one.experiment_id) == key],
            named={"created_by": names[row.created_by], "project": slugs[row.project_id]},
        )
        for row, key in zip(rows, keys, strict=True)
    ]


async def _scores(
    session: Session, keys: Collection[ExperimentKey]
) -> dict[ExperimentKey, list[float]]:
    scores: dict[ExperimentKey, list[float]] = {}
    for project_id, experiment_id, score in await evaluation_rows.list_latest_scores(session, keys):
        scores.setdefault((project_id, experiment_id), []).append(score)
    return scores


def _experiment_view(
    row: ExperimentRow,
    counts: Mapping[RunState, int],
    scores: Sequence[float],
    *,
    failures: Sequence[FailedRuns],
    named: Mapping[str, str],
) -> ExperimentView:
    return build_view(
        ExperimentView,
        row,
        **named,
        state=derive_experiment_state(counts),
        runs=dict(counts),
        latest_evaluation=_score_view(row, scores),
        failures=list(failures),
    )


def _score_view(row: ExperimentRow, scores: Sequence[float]) -> ScoreView | None:
    if not scores:
        return None
    metric, values = None, scores
    if isinstance(evaluation := load_definition(row.definition).evaluation, SupervisedEvaluation):
        sign = -1.0 if evaluation.goal == "minimize" else 1.0
        metric, values = evaluation.metric, [sign * score for score in scores]
    spread = statistics.stdev(values) if len(values) > 1 else None
    return ScoreView(
        runs=len(values),
        metric=metric,
        mean=statistics.fmean(values),
        stdev=spread,
        min=min(values),
        max=max(values),
    )


def read_definition(row: ExperimentRow) -> Definition:
    """Returns an experiment's definition in the current schema."""
    return load_definition(row.definition)
