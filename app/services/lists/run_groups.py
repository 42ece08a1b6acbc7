"""Groups of runs by fields and members of definitions, with the mean of a metric."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from app.db.engine import Session
from app.db.repositories import list_names
from app.db.repositories import run_groups as rows
from app.db.repositories.experiments import ExperimentKey
from app.db.repositories.run_groups import MeasuredRun
from app.domain.errors import InvalidError, TooLargeError
from app.domain.paging import PageRequest, read_cursor, refuse_cursor
from app.domain.principal import Principal
from app.metrics.grouped_values import compute_group_mean
from app.services.lists import columns, requests
from app.services.lists.requests import ListColumn, ListRequest
from app.services.views import pages
from app.services.views.login_names import load_login_names
from palestra.contract.documents import hash_document
from palestra.contract.filters import FILTER_FIELDS, Term
from palestra.contract.list_order import split_order
from palestra.contract.problems import suggest_nearest
from palestra.contract.run_lists import RunGroupView
from palestra.contract.views import Page

MAX_RUNS: Final = 100_000
"""Most runs that are grouped by one request."""
MAX_KEYS: Final = 4
SORTS: Final = ("mean", "n", "runs", "name")
_GROUPED: Final = frozenset(
    {"agent", "env", "kind", "name", "experiment", "user", "project", "state", "seed", "cause"}
)
"""Fields by which runs are grouped, beside members of definitions."""
_POINTERS: Final = {"query/sort": "query/metric", "query/columns": "query/by"}
_NAMES: Final = 2_000
"""Members among which the nearest one is looked for."""
_EXPERIMENTS: Final = 1_000
"""Experiments whose values one statement reads."""
_NAME: Final = 160
"""Characters of a name by which groups are ordered."""
_BARE: Final = re.compile(r"[A-Za-z0-9_./+-][A-Za-z0-9_./+:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedGroups:
    """Which groups to return.

    Attributes:
        filter: The runs (`palestra.contract.filters`).
        user: Login name of who submitted them; `None` for all.
        by: Keys whose values the runs of a group share; without one all runs are a group.
        metric: Series with its statistic, or a field that is a number.
    """

    filter: str
    user: str | None
    by: tuple[str, ...]
    metric: str


async def list_groups(
    session: Session, principal: Principal, wanted: WantedGroups, request: PageRequest
) -> Page[RunGroupView]:
    """Returns a page of groups; those without a mean come last where they are sorted by it.

    Raises:
        InvalidError: If filter, keys, metric or page are not valid; `not_a_group` for a key by
            which runs are not grouped, `not_a_metric` for one that is no number.
        TooLargeError: `too_many_runs` if more than 100,000 runs fit.
    """
    after = read_cursor(request)
    _check_sort(request.sort)
    terms = list(requests.read_terms(wanted.filter, "runs", principal))
    if wanted.user is not None:
        terms += requests.read_terms(f"user:{_quote(wanted.user)}", "runs", principal)
    found = await _resolve(session, principal, terms, wanted)
    _check_keys(found)
    await _check_members(session, principal, found.columns)
    runs = await rows.list_measured(session, terms, found.orders[0], found.scope, MAX_RUNS + 1)
    if len(runs) > MAX_RUNS:
        raise TooLargeError("too_many_runs", f"More than {MAX_RUNS:,} runs fit. Narrow the filter.")
    groups = _build_views(runs, found.columns, await _load_values(session, runs, found))
    keyed = _order(groups, request.sort)
    if after is not None:
        keyed = _skip(keyed, after)
    shown = [group for _, _, group in keyed[: request.limit]]
    keys = [(row_id, (value,)) for value, row_id, _ in keyed[: request.limit + 1]]
    return Page(items=shown, next_cursor=pages.find_next(keys, request))


async def _resolve(
    session: Session, principal: Principal, terms: Sequence[Term], wanted: WantedGroups
) -> ListRequest:
    """Returns the request with the metric as its order and the keys of groups as its columns."""
    if len(split_order(wanted.metric)) > 1:
        raise InvalidError(
            "not_a_metric",
            "groups have the mean of one metric: ask for each metric by itself",
            pointer="query/metric",
        )
    try:
        return await requests.resolve(
            session, principal, "runs", terms=terms, sort=wanted.metric, columns=wanted.by
        )
    except InvalidError as error:
        pointer = _POINTERS.get(error.pointer or "", error.pointer)
        raise InvalidError(error.code, error.detail, pointer=pointer, **error.extra) from None


def _check_sort(sort: str) -> None:
    if sort.removeprefix("-") not in SORTS:
        raise InvalidError(
            "invalid_sort",
            f"sort must be one of {', '.join(SORTS)}, with - in front to reverse",
            pointer="query/sort",
        )


def _check_keys(found: ListRequest) -> None:
    if len(found.columns) > MAX_KEYS:
        raise InvalidError(
            "too_many_columns", f"at most {MAX_KEYS} keys make a group", pointer="query/by"
        )
    for column in found.columns:
        if column.kind != "member" and column.field not in _GROUPED:
            raise InvalidError(
                "not_a_group",
                f"runs are grouped by {', '.join(sorted(_GROUPED))}, or by a member of the "
                "definition like agent.learning_rate",
                pointer="query/by",
            )
    field = FILTER_FIELDS.get(found.orders[0].field)
    is_statistic = found.orders[0].kind in {"series", "threshold"}
    if not is_statistic and (field is None or field.kind != "number"):
        raise InvalidError(
            "not_a_metric",
            "the mean is that of a series like evaluation/mean.best, of a threshold like "
            "reached.solved, or of env_step, update, episode or seed",
            pointer="query/metric",
        )


async def _load_values(
    session: Session, runs: Sequence[MeasuredRun], found: ListRequest
) -> dict[str, Mapping[object, JsonValue]]:
    """Returns, for keys that are not columns of runs, the values by experiment, user or project."""
    keys = list({(run.project_id, run.experiment_id) for run in runs})
    of_experiments: dict[ExperimentKey, dict[str, JsonValue]] = {}
    for first in range(0, len(keys), _EXPERIMENTS):
        some = keys[first : first + _EXPERIMENTS]
        of_experiments |= await columns.load_experiment_values(session, some, found.columns)
    made: dict[str, Mapping[object, JsonValue]] = {
        column.name: {key: of_experiments[key].get(column.field) for key in keys}
        for column in found.columns
    }
    names = await load_login_names(session, {run.created_by for run in runs})
    made["user"] = {user_id: name for user_id, name in names.items()}  # noqa: C416
    made["project"] = dict(found.scope.slugs.items())
    return made


async def _check_members(session: Session, principal: Principal, by: Sequence[ListColumn]) -> None:
    """Refuses members that no definition has; their groups would have a filter that is refused."""
    paths = {column.field for column in by if column.kind == "member"}
    known = await list_names.find_members(session, principal.project_ids, paths)
    for path in sorted(paths - known):
        names = await list_names.list_members(session, principal.project_ids, _NAMES)
        raise InvalidError(
            "unknown_column",
            f"is a member of no definition{suggest_nearest(path, names)}",
            pointer="query/by",
        )


_OF_RUN: Final[Mapping[str, Callable[[MeasuredRun], JsonValue]]] = {
    "seed": lambda run: run.seed,
    "state": lambda run: run.state,
    "cause": lambda run: run.cause,
    "experiment": lambda run: run.experiment_id,
}


def _read(
    column: ListColumn, run: MeasuredRun, values: Mapping[str, Mapping[object, JsonValue]]
) -> JsonValue:
    if column.field in _OF_RUN:
        return _OF_RUN[column.field](run)
    if column.field == "user":
        return values["user"].get(run.created_by)
    if column.field == "project":
        return values["project"].get(run.project_id)
    return values[column.name].get((run.project_id, run.experiment_id))


def _build_views(
    runs: Sequence[MeasuredRun],
    by: Sequence[ListColumn],
    values: Mapping[str, Mapping[object, JsonValue]],
) -> list[RunGroupView]:
    members: dict[tuple[JsonValue, ...], list[MeasuredRun]] = {}
    for run in runs:
        key = tuple(_read(column, run, values) for column in by)
        members.setdefault(key, []).append(run)
    names = [column.name for column in by]
    return [_view(dict(zip(names, key, strict=True)), some) for key, some in members.items()]


def _view(by: dict[str, JsonValue], runs: Sequence[MeasuredRun]) -> RunGroupView:
    found = compute_group_mean([run.value for run in runs if run.value is not None])
    return RunGroupView(
        name=", ".join(f"{key}={_write(value)}" for key, value in by.items()),
        by=by,
        filter=" ".join(_write_term(key, value) for key, value in by.items()),
        runs=len(runs),
        states=dict(Counter(run.state for run in runs)),
        n=found.n,
        mean=found.mean,
        stderr=found.stderr,
    )


def _write(value: JsonValue) -> str:
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)


def _write_term(key: str, value: JsonValue) -> str:
    # Every text contains the empty one, so its negation selects the runs without the value.
    return f'-{key}:~""' if value is None else f"{key}:{_quote(_write(value))}"


def _quote(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_Keyed = tuple[str | float | None, str, RunGroupView]
"""Value by which a group is ordered, its ID, and the group."""


def _order(groups: Sequence[RunGroupView], sort: str) -> list[_Keyed]:
    field, is_descending = sort.removeprefix("-"), sort.startswith("-")
    keyed = [(_value(group, field), hash_document(group.by)[:32], group) for group in groups]
    having = [one for one in keyed if one[0] is not None]
    lacking = [one for one in keyed if one[0] is None]
    having.sort(key=lambda one: (one[0], one[1]), reverse=is_descending)
    lacking.sort(key=lambda one: one[1], reverse=is_descending)
    return [*having, *lacking]


def _value(group: RunGroupView, field: str) -> str | float | None:
    if field == "name":
        return group.name[:_NAME]
    value: float | None = getattr(group, field)
    return value


def _skip(keyed: Sequence[_Keyed], after: tuple[str | float | None, str]) -> list[_Keyed]:
    """Returns the groups after the last one of the page before.

    Raises:
        InvalidError: `invalid_cursor` if there is no such group any more.
    """
    place = next((i for i, one in enumerate(keyed) if one[1] == after[1]), None)
    if place is None:
        raise refuse_cursor()
    return list(keyed[place + 1 :])
