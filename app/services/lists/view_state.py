"""Checks the state of a saved view, and finds what of it can still be shown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.db.engine import Session
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.services.lists import requests
from palestra.contract.filters import (
    FilterError,
    Kind,
    Statistic,
    Term,
    parse_filter,
    parse_key,
    split_terms,
)
from palestra.contract.list_order import OrderError, parse_order, split_order, write_order
from palestra.contract.saved_views import RunsPageState
from palestra.contract.views import FieldProblem

_LISTS: Final = ("columns", "pinned", "group_by")
_GONE: Final = "unknown_filter_field"


def check_state(state: RunsPageState) -> None:
    """Refuses a state whose filter cannot be read, or whose keys are none.

    Series and members of definitions need not exist: those of a view may be deleted later.

    Raises:
        InvalidError: With the pointer to the faulty member.
    """
    try:
        parse_filter(state.filter, "runs")
    except FilterError as error:
        raise InvalidError(
            error.code, str(error), pointer="/state/filter", position=error.position
        ) from None
    if state.sort:
        try:
            parse_order(state.sort, "runs")
        except OrderError as error:
            raise InvalidError(error.code, error.message, pointer="/state/sort") from None
    for name in _LISTS:
        for index, key in enumerate(getattr(state, name) or ()):
            try:
                parse_key(key, "runs")
            except FilterError as error:
                place = f"/state/{name}/{index}"
                raise InvalidError("unknown_column", error.message, pointer=place) from None


async def find_usable_state(
    session: Session, principal: Principal, state: RunsPageState
) -> tuple[RunsPageState, tuple[FieldProblem, ...]]:
    """Returns the state without what names a field that no longer exists, and why it lacks it.

    Args:
        session: A session.
        principal: The caller, limited to the project of the view.
        state: The state as it was saved.
    """
    problems: list[FieldProblem] = []
    kept: list[str] = []
    for text in split_terms(state.filter):
        fault = await _explain_term(session, principal, text)
        if fault is None:
            kept.append(text)
        else:
            code, message = fault
            problems.append(_describe("/state/filter", code, text, message))
    changes: dict[str, object] = {"filter": " ".join(kept)}
    for name in _LISTS:
        keys: Sequence[str] | None = getattr(state, name)
        if keys is None:
            continue
        found = [await _explain_key(session, principal, key) for key in keys]
        changes[name] = tuple(key for key, why in zip(keys, found, strict=True) if why is None)
        if name != "pinned":
            problems += [
                _describe(f"/state/{name}/{index}", _GONE, keys[index], why)
                for index, why in enumerate(found)
                if why is not None
            ]
    left: list[str] = []
    for part in split_order(state.sort) if state.sort else ():
        why = await _explain_order(session, principal, part)
        if why is None:
            left.append(part)
        else:
            problems.append(_describe("/state/sort", _GONE, part.removeprefix("-"), why))
    changes["sort"] = write_order(left)
    return state.model_copy(update=changes), tuple(problems)


def _describe(pointer: str, code: str, what: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, code=code, message=f"`{what}` {message}")


async def _explain_term(
    session: Session, principal: Principal, text: str
) -> tuple[str, str] | None:
    """Returns why a term cannot be used any more, as code and message; `None` if it can."""
    try:
        terms = requests.read_terms(text, "runs", principal)
        await _resolve(session, principal, terms)
    except InvalidError as error:
        return error.code, error.detail.partition(": ")[2]
    return None


async def _explain_key(session: Session, principal: Principal, key: str) -> str | None:
    """Returns why a key cannot be used any more; `None` if it can."""
    try:
        field, kind, statistic = parse_key(key, "runs")
    except FilterError as error:
        return error.message
    return await _explain_named(session, principal, field, kind, statistic)


async def _explain_order(session: Session, principal: Principal, part: str) -> str | None:
    """Returns why a key of an order cannot be used any more; `None` if it can."""
    try:
        (key,) = parse_order(part, "runs")
    except OrderError as error:
        return error.message
    return await _explain_named(session, principal, key.field, key.kind, key.statistic)


async def _explain_named(
    session: Session, principal: Principal, field: str, kind: Kind, statistic: Statistic
) -> str | None:
    if kind not in {"series", "member", "threshold"}:
        return None
    term = Term(field, kind, "contains" if kind == "member" else "gt", ("",), 0)
    try:
        await _resolve(session, principal, [replace(term, statistic=statistic)])
    except InvalidError as error:
        return error.detail.partition(": ")[2]
    return None


async def _resolve(session: Session, principal: Principal, terms: Sequence[Term]) -> None:
    await requests.resolve(session, principal, "runs", terms=terms, sort="created", columns=())
