"""Reads filters, keys and columns of lists, and finds what their names mean for the caller."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.db.engine import Session
from app.db.repositories import list_names
from app.db.repositories import thresholds as threshold_rows
from app.db.repositories.list_scope import ListScope
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.metrics.sort_records import (
    EPISODE_LENGTH,
    EPISODE_RETURN,
    STATISTICS,
    parse_evaluation_series,
)
from palestra.contract.filters import (
    FilterError,
    Kind,
    Statistic,
    Target,
    Term,
    parse_filter,
    parse_key,
)
from palestra.contract.list_order import OrderError, OrderKey, parse_order
from palestra.contract.problems import suggest_nearest

MAX_COLUMNS: Final = 50
_MAX_NAMES: Final = 2_000
"""Names among which the nearest one is looked for."""
_BUILT_IN: Final = frozenset({EPISODE_RETURN, EPISODE_LENGTH})


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A further column of a list."""

    name: str
    field: str
    kind: Kind
    statistic: Statistic


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A request for a list whose names are known."""

    terms: Sequence[Term]
    orders: tuple[OrderKey, ...]
    columns: Sequence[ListColumn]
    scope: ListScope


def read_terms(text: str, target: Target, principal: Principal) -> tuple[Term, ...]:
    """Returns the terms of a filter.

    Raises:
        InvalidError: If it cannot be read; `position` is the index of the faulty character.
    """
    try:
        terms = parse_filter(text, target)
    except FilterError as error:
        raise _refuse(error.code, error.message, error.position) from None
    return tuple(_replace_me(term, principal) for term in terms)


def _replace_me(term: Term, principal: Principal) -> Term:
    if term.field != "user" or term.operator != "is":
        return term
    values = tuple(principal.user if value == "me" else value for value in term.values)
    return replace(term, values=values)


async def resolve(
    session: Session,
    principal: Principal,
    target: Target,
    *,
    terms: Sequence[Term],
    sort: str,
    columns: Sequence[str],
) -> ListRequest:
    """Returns a request whose names mean something in the caller's projects.

    Raises:
        InvalidError: `unknown_filter_field`, those of `read_order`, `unknown_column` or
            `too_many_columns`.
    """
    orders = read_order(sort, target)
    found_columns = _read_columns(columns, target)
    names = _list_names("series", terms, orders, found_columns)
    series = await list_names.find_series(session, principal.project_ids, names)
    thresholds = await _find_thresholds(session, principal, terms, orders, found_columns)
    await _check_series(session, principal, terms, set(series))
    await _check_members(session, principal, terms)
    slugs = {
        membership.project_id: membership.slug
        for membership in principal.memberships
        if membership.project_id in principal.project_ids
    }
    scope = ListScope(principal.project_ids, slugs, series, thresholds)
    return ListRequest(terms, orders, found_columns, scope)


async def _find_thresholds(
    session: Session,
    principal: Principal,
    terms: Sequence[Term],
    orders: Sequence[OrderKey],
    columns: Sequence[ListColumn],
) -> dict[str, tuple[int, ...]]:
    names = _list_names("threshold", terms, orders, columns)
    if not names:
        return {}
    found = await threshold_rows.find_ids(session, principal.project_ids, names)
    for term in terms:
        if term.kind == "threshold" and term.field not in found:
            known = await threshold_rows.list_names(session, principal.project_ids)
            message = f"is a threshold of no project{suggest_nearest(term.field, known)}"
            raise _refuse("unknown_filter_field", message, term.position)
    return found


def _list_names(
    kind: Kind,
    terms: Iterable[Term],
    orders: Iterable[OrderKey],
    columns: Iterable[ListColumn],
) -> set[str]:
    named: list[Term | OrderKey | ListColumn] = [*terms, *orders, *columns]
    return {one.field for one in named if one.kind == kind}


def read_order(sort: str, target: Target) -> tuple[OrderKey, ...]:
    """Returns the keys of the order of a list.

    Raises:
        InvalidError: `invalid_sort`, `duplicate_sort_key`, `too_many_sort_keys` or
            `sort_too_long`.
    """
    try:
        return parse_order(sort, target)
    except OrderError as error:
        raise InvalidError(error.code, error.message, pointer="query/sort") from None


def _read_columns(columns: Sequence[str], target: Target) -> list[ListColumn]:
    names = list(dict.fromkeys(columns))
    if len(names) > MAX_COLUMNS:
        raise InvalidError(
            "too_many_columns", f"at most {MAX_COLUMNS} columns", pointer="query/columns"
        )
    found: list[ListColumn] = []
    for name in names:
        try:
            found.append(ListColumn(name, *parse_key(name, target)))
        except FilterError as error:
            raise InvalidError("unknown_column", error.message, pointer="query/columns") from None
    return found


async def _check_series(
    session: Session, principal: Principal, terms: Sequence[Term], known: set[str]
) -> None:
    for term in terms:
        if term.kind != "series" or term.field in known | _BUILT_IN:
            continue
        made = parse_evaluation_series(term.field)
        if made is not None and made[1] in STATISTICS:
            continue
        names = await list_names.list_series(session, principal.project_ids, _MAX_NAMES)
        if names:
            message = f"is a series of no run{suggest_nearest(term.field, names)}"
            raise _refuse("unknown_filter_field", message, term.position)


async def _check_members(session: Session, principal: Principal, terms: Sequence[Term]) -> None:
    paths = {term.field for term in terms if term.kind == "member"}
    known = await list_names.find_members(session, principal.project_ids, paths)
    for term in terms:
        if term.kind != "member" or term.field in known:
            continue
        names = await list_names.list_members(session, principal.project_ids, _MAX_NAMES)
        if names:
            message = f"is a member of no definition{suggest_nearest(term.field, names)}"
            raise _refuse("unknown_filter_field", message, term.position)


def _refuse(code: str, message: str, position: int) -> InvalidError:
    return InvalidError(
        code,
        f"at character {position + 1}: {message}",
        pointer="query/filter",
        position=position,
    )
