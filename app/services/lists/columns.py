"""The values of further columns of lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.repositories import experiment_lists, experiments
from app.db.repositories import list_values as rows
from app.db.repositories.experiments import ExperimentKey
from app.services.lists.requests import ListColumn, ListRequest
from palestra.contract.resources import ExperimentView, RunView

_OF_RUN: Final[Mapping[str, Callable[[RunView], Any]]] = {
    "id": lambda view: view.id,
    "experiment": lambda view: view.experiment_id,
    "project": lambda view: view.project,
    "user": lambda view: view.created_by,
    "state": lambda view: view.state.value,
    "cause": lambda view: view.cause,
    "finding": lambda view: ", ".join(one.rule for one in view.findings) or None,
    "seed": lambda view: view.seed,
    "env_step": lambda view: view.progress.env_step,
    "update": lambda view: view.progress.update,
    "episode": lambda view: view.progress.episode,
    "created": lambda view: view.created_at.isoformat(),
    "started": lambda view: view.started_at and view.started_at.isoformat(),
    "finished": lambda view: view.finished_at and view.finished_at.isoformat(),
}
_OF_EXPERIMENT_VIEW: Final[Mapping[str, Callable[[ExperimentView], Any]]] = {
    "id": lambda view: view.id,
    "experiment": lambda view: view.id,
    "project": lambda view: view.project,
    "user": lambda view: view.created_by,
    "state": lambda view: view.state.value,
    "created": lambda view: view.created_at.isoformat(),
}
_OF_EXPERIMENT: Final[Mapping[str, Callable[[ExperimentRow], Any]]] = {
    "agent": lambda row: row.agent,
    "env": lambda row: row.env,
    "kind": lambda row: row.kind,
    "name": lambda row: row.name,
    "archived": lambda row: row.archived_at is not None,
}


async def add_to_runs(
    session: Session, views: Sequence[RunView], found: Sequence[RunRow], request: ListRequest
) -> list[RunView]:
    """Returns the views of runs with the values of the columns."""
    columns = request.columns
    if not columns:
        return list(views)
    keys = [(row.project_id, row.experiment_id) for row in found]
    of_experiments = await load_experiment_values(session, keys, columns)
    run_ids = [view.id for view in views]
    scope = request.scope
    named = {one.field for one in columns if one.kind == "series"} & scope.series.keys()
    summaries: dict[tuple[str, str], Any] = {
        **await rows.load_summaries(session, run_ids, {scope.series[one]: one for one in named}),
        **await rows.load_crossings(session, run_ids, scope.thresholds),
    }
    return [
        view.model_copy(
            update={
                "values": {
                    one.name: _read_run(one, view, of_experiments[key], summaries)
                    for one in columns
                }
            }
        )
        for view, key in zip(views, keys, strict=True)
    ]


def _read_run(
    column: ListColumn,
    view: RunView,
    of_experiment: Mapping[str, JsonValue],
    summaries: Mapping[tuple[str, str], rows.Summary | rows.CrossingValues],
) -> JsonValue:
    if column.kind in {"series", "threshold"}:
        summary = summaries.get((view.id, column.field))
        return None if summary is None else getattr(summary, column.statistic)
    if column.field in _OF_RUN:
        value: JsonValue = _OF_RUN[column.field](view)
        return value
    return of_experiment.get(column.field)


async def load_experiment_values(
    session: Session, keys: Sequence[ExperimentKey], columns: Sequence[ListColumn]
) -> dict[ExperimentKey, dict[str, JsonValue]]:
    """Returns, by experiment, the values of the columns that all runs of an experiment share."""
    found: dict[ExperimentKey, dict[str, JsonValue]] = {key: {} for key in keys}
    named = [one.field for one in columns if one.field in _OF_EXPERIMENT]
    if named:
        for key, row in (await experiments.load_by_keys(session, found)).items():
            found[key] = {field: _OF_EXPERIMENT[field](row) for field in named}
    paths = [one.field for one in columns if one.kind == "member"]
    for key, path, value in await rows.load_members(session, found, paths):
        found[key][path] = value
    return found


async def add_to_experiments(
    session: Session,
    views: Sequence[ExperimentView],
    found: Sequence[ExperimentRow],
    request: ListRequest,
) -> list[ExperimentView]:
    """Returns the views of experiments with the values of the columns."""
    columns = request.columns
    if not columns:
        return list(views)
    keys = [(row.project_id, row.id) for row in found]
    values = await load_experiment_values(session, keys, columns)
    for column in columns:
        if column.kind in {"series", "threshold"}:
            means = await experiment_lists.load_means(session, keys, column, request.scope)
            for key, mean in means.items():
                values[key][column.name] = mean
    return [
        view.model_copy(
            update={
                "values": {
                    one.name: values[key].get(one.name, _read_experiment(one, view))
                    for one in columns
                }
            }
        )
        for view, key in zip(views, keys, strict=True)
    ]


def _read_experiment(column: ListColumn, view: ExperimentView) -> JsonValue:
    if column.field not in _OF_EXPERIMENT_VIEW:
        return None
    value: JsonValue = _OF_EXPERIMENT_VIEW[column.field](view)
    return value
