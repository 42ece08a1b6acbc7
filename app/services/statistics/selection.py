"""Which runs and groups a query for statistics asks for, and their evaluations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.repositories import blocks as rows
from app.db.repositories import queried_runs
from app.db.repositories.queried_runs import QueriedRun
from app.domain.errors import InvalidError, TooLargeError
from app.domain.principal import Principal
from app.services.curves import fields, visible_runs
from app.services.curves.fields import Definitions
from app.services.lists import found_runs
from palestra.contract.statistics import StatisticsQuery

MAX_RUNS: Final = 2_000
"""Largest number of runs of one query."""
MAX_EVALUATIONS: Final = 400_000
"""Largest number of evaluations that one query may read."""
NO_ENVIRONMENT: Final = "(none)"
"""Stands for the environment of a definition without one, which trains on data."""


@dataclass(frozen=True, slots=True)
class SelectedGroup:
    """Runs that are one group, by seed."""

    name: str
    runs: Sequence[QueriedRun]
    by: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class SelectedRuns:
    """What a query is over.

    Attributes:
        groups: The groups, each with at least one run.
        environments: Environment of each run, by ID.
        evaluations: Evaluations that count of the wanted source, in order of training.
        definitions: Parsed definitions by project and experiment.
    """

    groups: Sequence[SelectedGroup]
    environments: Mapping[str, str]
    evaluations: Sequence[EvaluationRow]
    definitions: Definitions


async def select_runs(
    session: Session, principal: Principal, wanted: StatisticsQuery
) -> SelectedRuns:
    """Returns the groups of a query with their evaluations.

    Raises:
        NotFoundError: If the caller's projects lack one of the runs or experiments.
        InvalidError: `empty_group`, `unknown_field` or `repeated_group`.
        TooLargeError: If the query exceeds a limit.
    """
    run_ids = list(dict.fromkeys([*wanted.runs, *await _list_runs(session, principal, wanted)]))
    listed = {run_id for group in wanted.groups for run_id in group.run_ids}
    if len(listed.union(run_ids)) > MAX_RUNS:
        raise _too_large(f"At most {MAX_RUNS} runs.")
    runs = await visible_runs.load(session, principal, listed.union(run_ids))
    definitions = await fields.load_definitions(session, list(runs.values()))
    groups = _list_groups(wanted, runs)
    if run_ids:
        found = fields.group_by_fields(
            [runs[run_id] for run_id in run_ids], definitions, wanted.group_by
        )
        groups += [SelectedGroup(fields.name_group(by), _order(some), by) for by, some in found]
    _check_groups(groups)
    environments = {
        run.id: fields.read_field("env", run, definitions[run.project_id, run.experiment_id])
        for run in runs.values()
    }
    counts = await queried_runs.count_evaluations(session, runs)
    if sum(count for _, count in counts.values()) > MAX_EVALUATIONS:
        raise _too_large(f"The runs have more than {MAX_EVALUATIONS} evaluations.")
    evaluations = await rows.list_evaluations(session, set(runs), superseded=False)
    return SelectedRuns(
        groups,
        {key: str(value or NO_ENVIRONMENT) for key, value in environments.items()},
        [row for row in evaluations if row.source == wanted.score.source],
        definitions,
    )


async def _list_runs(session: Session, principal: Principal, wanted: StatisticsQuery) -> list[str]:
    found: list[str] = []
    for index, experiment_id in enumerate(wanted.experiments):
        of_experiment = await visible_runs.list_ids(session, principal, experiment_id, MAX_RUNS + 1)
        if not of_experiment:
            raise _empty(f"/experiments/{index}")
        found += of_experiment
    if wanted.filter:
        found += await found_runs.list_ids(session, principal, wanted.filter, MAX_RUNS + 1)
    return found


def _list_groups(wanted: StatisticsQuery, runs: Mapping[str, QueriedRun]) -> list[SelectedGroup]:
    for index, group in enumerate(wanted.groups):
        if not group.run_ids:
            raise _empty(f"/groups/{index}/run_ids")
    return [
        SelectedGroup(group.name, _order([runs[run_id] for run_id in set(group.run_ids)]), {})
        for group in wanted.groups
    ]


def _order(runs: Sequence[QueriedRun]) -> list[QueriedRun]:
    return sorted(runs, key=lambda run: (run.seed, run.id))


def _check_groups(groups: Sequence[SelectedGroup]) -> None:
    if not groups:
        raise InvalidError(
            "empty_group",
            "There are no runs: name some in `runs`, `experiments`, `filter` or `groups`.",
            pointer="/runs",
        )
    names = [group.name for group in groups]
    if len(set(names)) < len(names):
        raise InvalidError(
            "repeated_group", "Two groups have the same name: rename one.", pointer="/groups"
        )


def _empty(pointer: str) -> InvalidError:
    return InvalidError("empty_group", "has no runs: name at least one", pointer=pointer)


def _too_large(limit: str) -> TooLargeError:
    return TooLargeError("query_too_large", f"{limit} Ask for fewer runs.")
