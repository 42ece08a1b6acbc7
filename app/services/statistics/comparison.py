"""Answers a query that compares runs, from one state of the database."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.db.engine import Database
from app.db.repositories import access as access_rows
from app.db.repositories import events as event_rows
from app.db.repositories import origins
from app.db.repositories.queried_runs import QueriedRun
from app.domain.errors import InvalidError, TooLargeError
from app.domain.principal import Principal
from app.metrics.statistics import bootstrap
from app.services.curves.fields import Definitions
from app.services.statistics import captions, parts
from app.services.statistics.compared_fields import Fields, compare_fields, flatten
from app.services.statistics.origin_fields import describe_origin, warn_of_origins
from app.services.statistics.parameters import rank_parameters
from app.services.statistics.scoring import compute_scores, read_curves
from app.services.statistics.selection import SelectedGroup, SelectedRuns, select_runs
from palestra.contract.comparison import (
    MAX_COMPARED_RUNS,
    MAX_MEMBERS,
    ComparedField,
    ComparedMember,
    ComparedRun,
    ComparisonMethod,
    ComparisonQuery,
    ComparisonResult,
    EnvironmentImportance,
)
from palestra.contract.statistics import LeftOutRun, StatisticsQuery

MAX_PARAMETERS: Final = 60
"""Most differing parameters whose importance is computed."""
_NO_PARAMETER: Final = ("env.",)
_IMPORTANCE: Final = (
    "Spearman's rank correlation, and epsilon squared of a one-way split by the values (more than "
    "4 numbers by their quartiles), one parameter at a time within one environment"
)


@dataclass(frozen=True, slots=True)
class ComparedData:
    """What is read from the database for a comparison.

    Attributes:
        selected: The members with their runs and evaluations.
        projects: Slug of each project by ID.
        origin: Versions, device and code of each run.
        cursor: Newest event.
    """

    selected: SelectedRuns
    projects: Mapping[str, str]
    origin: Mapping[str, Fields]
    cursor: int


async def compare(
    database: Database, principal: Principal, wanted: ComparisonQuery
) -> ComparisonResult:
    """Returns how runs, or groups of runs, differ in definitions, origin and scores.

    Raises:
        NotFoundError: If the caller's projects lack one of the runs or experiments.
        InvalidError: `empty_group`, `too_few_members`, `too_many_members` or `unknown_field`.
        TooLargeError: If the query exceeds a limit.
    """
    async with database.read() as session:
        selected = _make_members(
            wanted, await select_runs(session, principal, _to_statistics(wanted))
        )
        runs = [run for group in selected.groups for run in group.runs]
        ids = [run.id for run in runs]
        of_runs: dict[str, list[origins.TrainingOrigin]] = {}
        for one in await origins.list_origins(session, ids):
            of_runs.setdefault(one.run_id, []).append(one)
        submissions = await origins.load_submissions(session, ids)
        origin = {
            run_id: describe_origin(of_runs.get(run_id, []), submissions.get(run_id, {}))
            for run_id in ids
        }
        data = ComparedData(
            selected,
            await access_rows.load_project_slugs(session, {run.project_id for run in runs}),
            origin,
            await event_rows.read_newest_id(session),
        )
    return await asyncio.to_thread(_answer, wanted, data)


def _to_statistics(wanted: ComparisonQuery) -> StatisticsQuery:
    return StatisticsQuery(
        runs=wanted.runs,
        experiments=wanted.experiments,
        filter=wanted.filter,
        group_by=wanted.group_by or ("experiment",),
        score=wanted.score,
        parts=(),
        rng_seed=wanted.rng_seed,
    )


def _make_members(wanted: ComparisonQuery, selected: SelectedRuns) -> SelectedRuns:
    groups = list(selected.groups)
    if not wanted.group_by:
        groups = [
            SelectedGroup(run.id, [run], {})
            for run in _order_runs(wanted.runs, [run for group in groups for run in group.runs])
        ]
    what = "groups" if wanted.group_by else "runs"
    if len(groups) < 2:
        raise InvalidError(
            "too_few_members",
            f"There is only one of the {what} to compare: name at least two.",
            pointer="/group_by" if wanted.group_by else "/runs",
        )
    if len(groups) > MAX_MEMBERS:
        raise InvalidError(
            "too_many_members",
            f"There are {len(groups)} {what} to compare, at most {MAX_MEMBERS} may be: choose "
            f"fewer{'' if wanted.group_by else ', or group them by fields in `group_by`'}.",
            pointer="/group_by" if wanted.group_by else "/runs",
        )
    runs = sum(len(group.runs) for group in groups)
    if runs > MAX_COMPARED_RUNS:
        raise TooLargeError(
            "query_too_large",
            f"The groups have {runs} runs, at most {MAX_COMPARED_RUNS} may be compared. Ask for "
            "fewer runs.",
        )
    return replace(selected, groups=groups)


def _order_runs(wanted: Sequence[str], runs: Sequence[QueriedRun]) -> list[QueriedRun]:
    """Returns the runs in the order in which the query names them, the others behind."""
    places = {run_id: index for index, run_id in enumerate(wanted)}
    return sorted(runs, key=lambda run: places.get(run.id, len(places)))


def _answer(wanted: ComparisonQuery, data: ComparedData) -> ComparisonResult:
    selected = data.selected
    scores, reasons = compute_scores(wanted.score, selected, read_curves(selected))
    flat = {key: flatten(definition) for key, definition in selected.definitions.items()}
    of_members = [
        [flat[run.project_id, run.experiment_id] for run in group.runs] for group in selected.groups
    ]
    definition = compare_fields(of_members)
    origin = compare_fields(
        [[data.origin[run.id] for run in group.runs] for group in selected.groups]
    )
    varying = [one.path for one in definition if one.differs]
    runs = _list_runs(data, scores, flat, varying[:MAX_PARAMETERS])
    importance, notes = _rank(wanted, runs, varying)
    return ComparisonResult(
        members=_build_members(wanted, data, scores),
        definition=definition,
        origin=origin,
        runs=runs,
        parameters=varying[:MAX_PARAMETERS],
        importance=importance,
        warnings=_warn(runs, origin),
        notes=_write_notes(selected, scores, reasons) + notes,
        left_out=[LeftOutRun(run_id=key, reason=reason) for key, reason in reasons.items()],
        method=ComparisonMethod(
            score=captions.describe_score(wanted.score),
            importance=_IMPORTANCE,
            permutations=wanted.permutations,
            rng_seed=wanted.rng_seed,
            generator=bootstrap.GENERATOR,
        ),
        cursor=data.cursor,
    )


def _build_members(
    wanted: ComparisonQuery, data: ComparedData, scores: Mapping[str, float]
) -> list[ComparedMember]:
    names = [_name(group, data.selected.definitions) for group in data.selected.groups]
    return [
        ComparedMember(
            # Replicates of one seed, and experiments of equal names, are told apart by their IDs.
            name=name if names.count(name) == 1 else f"{name} · {_identify(group)}",
            by=dict(group.by),
            run_ids=[run.id for run in group.runs],
            environments=parts.summarise_raw_scores(
                _to_statistics(wanted), data.selected, group, scores
            ),
        )
        for name, group in zip(names, data.selected.groups, strict=True)
    ]


def _name(group: SelectedGroup, definitions: Definitions) -> str:
    run = group.runs[0]
    name = str(definitions[run.project_id, run.experiment_id].get("name", run.experiment_id))
    if not group.by:
        return f"{name}, seed {run.seed}"
    return name if list(group.by) == ["experiment"] else group.name


def _identify(group: SelectedGroup) -> str:
    return group.runs[0].experiment_id[-8:] if group.by else group.runs[0].id[-6:]


def _list_runs(
    data: ComparedData,
    scores: Mapping[str, float],
    flat: Mapping[tuple[str, str], Fields],
    varying: Sequence[str],
) -> list[ComparedRun]:
    found = []
    for index, group in enumerate(data.selected.groups):
        for run in group.runs:
            key = (run.project_id, run.experiment_id)
            found.append(
                ComparedRun(
                    run_id=run.id,
                    project=data.projects[run.project_id],
                    experiment_id=run.experiment_id,
                    experiment=str(data.selected.definitions[key].get("name", run.experiment_id)),
                    seed=run.seed,
                    member=index,
                    environment=data.selected.environments[run.id],
                    score=scores.get(run.id),
                    values=[flat[key].get(path) for path in varying],
                )
            )
    return found


def _rank(
    wanted: ComparisonQuery, runs: Sequence[ComparedRun], varying: Sequence[str]
) -> tuple[list[EnvironmentImportance], list[str]]:
    shown = varying[:MAX_PARAMETERS]
    columns = [i for i, path in enumerate(shown) if not path.startswith(_NO_PARAMETER)]
    found, notes = rank_parameters(
        runs,
        {shown[i]: i for i in columns},
        permutations=wanted.permutations,
        rng_seed=wanted.rng_seed,
    )
    if len(varying) > MAX_PARAMETERS:
        notes.append(
            f"{len(varying)} members of the definitions differ; importance is of the first "
            f"{MAX_PARAMETERS}."
        )
    return found, notes


def _warn(runs: Sequence[ComparedRun], origin: Sequence[ComparedField]) -> list[str]:
    environments = sorted({run.environment for run in runs})
    found = warn_of_origins(origin)
    if len(environments) > 1:
        found.insert(
            0,
            f"The runs are of {len(environments)} environments "
            f"({captions.list_some(environments)}), whose returns have different scales: scores "
            "and importance are given for each environment alone.",
        )
    return found


def _write_notes(
    selected: SelectedRuns, scores: Mapping[str, float], reasons: Mapping[str, str]
) -> list[str]:
    notes = []
    if reasons:
        run_id, reason = next(iter(reasons.items()))
        notes.append(
            f"1 run has no score and is left out of scores and importance: {run_id}, {reason}."
            if len(reasons) == 1
            else f"{len(reasons)} runs have no score and are left out of scores and importance; "
            f"the first is {run_id}: {reason}."
        )
    few = [
        group.name
        for group in selected.groups
        if group.by and sum(run.id in scores for run in group.runs) < captions.MIN_SEEDS
    ]
    if few:
        notes.append(captions.note_few_seeds(few))
    return notes
