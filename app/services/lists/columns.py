"""The values of further columns of lists."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from pydantic import JsonValue

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.repositories import experiment_lists, experiments
from app.db.repositories import list_values as rows
from app.db.repositories.experiments import ExperimentKey
from app.services.lists.requests import ListColumn, ListRequest
from app.services.views.runs import RunDocument
from palestra.contract.resources import ExperimentView

_OF_RUN: Final[Mapping[str, Callable[[RunDocument], Any]]] = {
    "id": lambda run: run["id"],
    "experiment": lambda run: run["experiment_id"],
    "project": lambda run: run["project"],
    "user": lambda run: run["created_by"],
    "state": lambda run: run["state"],
    "cause": lambda run: run["cause"],
    "finding": lambda run: ", ".join(one["rule"] for one in run["findings"]) or None,
    "seed": lambda run: run["seed"],
    "env_step": lambda run: run["progress"]["env_step"],
    "update": lambda run: run["progress"]["update"],
    "episode": lambda run: run["progress"]["episode"],
    "created": lambda run: run["created_at"].isoformat(),
    "started": lambda run: run["started_at"] and run["started_at"].isoformat(),
    "finished": lambda run: run["finished_at"] and run["finished_at"].isoformat(),
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
    session: Session,
    runs: Sequence[RunDocument],
    keys: Sequence[ExperimentKey],
    request: ListRequest,
) -> None:
    """Adds the values of the columns to runs.

    Args:
        session: A session.
        runs: Runs, to which the values are added.
        keys: The experiment of each of them.
        request: The request for the list.
    """
    columns = request.columns
    if not columns:
        return
    of_experiments = await load_experiment_values(session, keys, columns)
    run_ids = [run["id"] for run in runs]
    scope = request.scope
    named = {one.field for one in columns if one.kind == "series"} & scope.series.keys()
    summaries: dict[tuple[str, str], Any] = {
        **await rows.load_summaries(session, run_ids, {scope.series[one]: one for one in named}),
        **await rows.load_crossings(session, run_ids, scope.thresholds),
    }
    for run, key in zip(runs, keys, strict=True):
        values = {one.name: _read_run(one, run, of_experiments[key], summaries) for one in columns}
        # A member of a definition may be a whole number of more than 64 bits.
        run["values"] = orjson.Fragment(json.dumps(values))


def _read_run(
    column: ListColumn,
    run: RunDocument,
    of_experiment: Mapping[str, JsonValue],
    summaries: Mapping[tuple[str, str], rows.Summary | rows.CrossingValues],
) -> JsonValue:
    if column.kind in {"series", "threshold"}:
        summary = summaries.get((run["id"], column.field))
        return None if summary is None else getattr(summary, column.statistic)
    if column.field in _OF_RUN:
        value: JsonValue = _OF_RUN[column.field](run)
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
            found_values = await experiment_lists.load_statistics(
                session, keys, column, request.scope
            )
            for key, value in found_values.items():
                values[key][column.name] = value
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
