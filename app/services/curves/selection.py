"""Which curves and groups a query asks for: runs and experiments times names, and fields."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from app.db.engine import Session
from app.db.repositories import blocks as rows
from app.db.repositories import queried_runs
from app.db.repositories.queried_runs import QueriedRun
from app.domain.errors import InvalidError, TooLargeError
from app.domain.principal import Principal
from app.metrics.sort_records import (
    EPISODE_LENGTH,
    EPISODE_RETURN,
    STATISTICS,
    parse_evaluation_series,
)
from app.services.curves import visible_runs
from app.services.curves.buckets import Key
from app.services.curves.fields import group_runs, load_definitions, name_group, read_field
from app.services.lists import found_runs
from palestra.contract.problems import suggest_nearest
from palestra.contract.queries import SeriesQuery
from palestra.contract.states import FINAL_RUN_STATES
from palestra.contract.telemetry import Evaluation

MAX_CURVES: Final = 2_000
"""Largest number of different curves of one query, including those of its groups."""
MAX_CELLS: Final = 1_500_000
"""Largest product of curves and buckets of one query."""
MAX_NAMED_CELLS: Final = 2 * MAX_CELLS
"""The same, where a curve counts once for each group that names it."""
MAX_POINTS: Final = 1_000_000_000
"""Largest number of stored points that one query may read."""
_BUILT_IN: Final = frozenset({EPISODE_RETURN, EPISODE_LENGTH})
"""Series that every training has, though maybe later."""


@dataclass(frozen=True, slots=True)
class CurveGroup:
    """Runs whose curves of one series are aggregated."""

    name: str
    series: str
    run_ids: Sequence[str]
    carry_forward: bool
    by: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def keys(self) -> list[Key]:
        """The curves of the group."""
        return [(run_id, self.series) for run_id in self.run_ids]


@dataclass(frozen=True, slots=True)
class Selection:
    """The curves of a query.

    Attributes:
        shown: Curves of the answer, repeated ones included.
        groups: Groups of the answer.
        keys: All different curves, those of groups included.
        runs: The runs of all curves, by ID.
        environments: Environment of each run in a group; empty if no interval is asked for.
    """

    shown: Sequence[Key]
    groups: Sequence[CurveGroup]
    keys: Sequence[Key]
    runs: Mapping[str, QueriedRun]
    environments: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored_keys(self) -> list[Key]:
        """The curves that are stored, not computed from evaluations."""
        return [key for key in self.keys if parse_evaluation_series(key[1]) is None]


async def select_curves(session: Session, principal: Principal, wanted: SeriesQuery) -> Selection:
    """Returns the curves and groups of a query.

    Raises:
        NotFoundError: If the caller's projects lack one of the runs or experiments.
        InvalidError: `empty_group`, `unknown_field` or a fault of the filter.
        TooLargeError: If the query exceeds a limit.
    """
    _check_size(wanted, len(wanted.runs))
    run_ids = list(dict.fromkeys([*wanted.runs, *await _list_runs(session, principal, wanted)]))
    _check_size(wanted, len(run_ids))
    listed = {one.run_id for one in wanted.select}
    listed |= {run_id for group in wanted.groups for run_id in group.run_ids}
    runs = await visible_runs.load(session, principal, listed.union(run_ids))
    shown = [(one.run_id, one.series) for one in wanted.select]
    if wanted.show_runs:
        shown += [(run_id, name) for name in wanted.names for run_id in run_ids]
    groups = [*_list_groups(wanted)]
    if wanted.group_by:
        groups += await _group_by_fields(session, wanted, [runs[run_id] for run_id in run_ids])
    keys = dict.fromkeys([*shown, *(key for group in groups for key in group.keys)])
    environments = await _load_environments(session, wanted, groups, runs)
    return Selection(shown, groups, list(keys), runs, environments)


async def check_names(
    session: Session, wanted: SeriesQuery, selection: Selection, points: Mapping[Key, int]
) -> None:
    """Refuses names of series that none of the runs has.

    A run that has not ended may get the series later, so its curve is answered without points.

    Args:
        session: A session that reads.
        wanted: The query.
        selection: Its curves.
        points: Number of points of each stored curve that exists.

    Raises:
        InvalidError: `unknown_series` if none of the runs for which a name is wanted has it, all of
            them have ended, and some have series.
        TooLargeError: If the curves hold too many points.
    """
    if sum(points.values()) > MAX_POINTS:
        raise _too_large(f"The curves hold more than {MAX_POINTS} points.")
    runs_of: dict[str, set[str]] = {}
    for run_id, name in selection.keys:
        runs_of.setdefault(name, set()).add(run_id)
    for name in set(runs_of) - {name for _, name in points} - _BUILT_IN:
        if not have_ended(selection.runs[run_id] for run_id in runs_of[name]):
            continue
        known = await _list_known_names(session, name, runs_of[name])
        if known and name not in known:
            raise InvalidError(
                "unknown_series",
                f"is not a series of these runs{suggest_nearest(name, sorted(known))}",
                pointer=_find_pointer(wanted, name),
            )


def have_ended(runs: Iterable[QueriedRun]) -> bool:
    """Returns whether none of the runs can get further points of its training."""
    return all(run.state in FINAL_RUN_STATES for run in runs)


async def _list_known_names(session: Session, name: str, run_ids: set[str]) -> set[str]:
    """Returns the names that may be meant by `name`; empty where the runs have no data yet."""
    made = parse_evaluation_series(name)
    if made is None:
        return await queried_runs.list_names(session, run_ids)
    prefix = name.partition("/")[0]
    if made[1] in STATISTICS:
        return {name}
    evaluations = [
        Evaluation.model_validate_json(row.body)
        for row in await rows.list_evaluations(session, run_ids, superseded=True)
    ]
    if not evaluations:
        return set()
    metrics = {metric for one in evaluations for metric in one.metrics}
    return {f"{prefix}/{statistic}" for statistic in metrics.union(STATISTICS)}


def _find_pointer(wanted: SeriesQuery, name: str) -> str:
    if name in wanted.names:
        return f"/names/{wanted.names.index(name)}"
    for index, one in enumerate(wanted.select):
        if one.series == name:
            return f"/select/{index}/series"
    index = next(index for index, group in enumerate(wanted.groups) if group.series == name)
    return f"/groups/{index}/series"


def _check_size(wanted: SeriesQuery, runs: int) -> None:
    curves = len(wanted.select) + runs * len(wanted.names)
    grouped = sum(len(group.run_ids) for group in wanted.groups)
    different = {(one.run_id, one.series) for one in wanted.select}
    different |= {(run, group.series) for group in wanted.groups for run in group.run_ids}
    most = len(different) + runs * len(wanted.names)
    too_often = (curves + grouped) * wanted.buckets > MAX_NAMED_CELLS
    if most > MAX_CURVES or most * wanted.buckets > MAX_CELLS or too_often:
        raise _too_large(f"At most {MAX_CURVES} curves and {MAX_CELLS} buckets in all.")


def _too_large(limit: str) -> TooLargeError:
    return TooLargeError("query_too_large", f"{limit} Ask for fewer curves or buckets.")


async def _list_runs(session: Session, principal: Principal, wanted: SeriesQuery) -> list[str]:
    found: list[str] = []
    for experiment_id in wanted.experiments:
        found += await visible_runs.list_ids(session, principal, experiment_id, MAX_CURVES + 1)
    if wanted.filter:
        found += await found_runs.list_ids(session, principal, wanted.filter, MAX_CURVES + 1)
    return found


async def _load_environments(
    session: Session,
    wanted: SeriesQuery,
    groups: Sequence[CurveGroup],
    runs: Mapping[str, QueriedRun],
) -> dict[str, str]:
    """Returns the environment of each run in a group, by which intervals are stratified."""
    if not {"interval", "iqm_interval"} & set(wanted.statistics):
        return {}
    grouped = [runs[run_id] for run_id in {run for group in groups for run in group.run_ids}]
    definitions = await load_definitions(session, grouped)
    return {
        run.id: str(read_field("env", run, definitions[run.project_id, run.experiment_id]))
        for run in grouped
    }


def _list_groups(wanted: SeriesQuery) -> Iterator[CurveGroup]:
    for index, group in enumerate(wanted.groups):
        if not group.run_ids:
            raise InvalidError(
                "empty_group", "has no runs: name at least one", pointer=f"/groups/{index}/run_ids"
            )
        yield CurveGroup(group.name, group.series, group.run_ids, group.carry_forward)


async def _group_by_fields(
    session: Session, wanted: SeriesQuery, runs: Sequence[QueriedRun]
) -> list[CurveGroup]:
    if not runs or not wanted.names:
        missing = "names" if runs else "runs"
        raise InvalidError(
            "empty_group",
            f"has nothing to group: `{missing}` is empty",
            pointer=f"/{missing}" if runs else "/group_by",
        )
    members = await group_runs(session, runs, wanted.group_by)
    return [
        CurveGroup(name_group(by), name, [run.id for run in some], wanted.carry_forward, by)
        for name in wanted.names
        for by, some in members
    ]
