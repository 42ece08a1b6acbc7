"""Refuses undeclared query parameters, and repeated parameters where the route takes one.

One router-level dependency, derived from what each route declares, so that no route can omit it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant

from app.api.errors import HttpProblemError
from palestra.contract.problems import MAX_PROBLEMS, build_pointer, suggest_nearest
from palestra.contract.views import FieldProblem

_MAX_NAME: Final = 64
"""Longest unknown name, in characters, that is compared with the known names."""

_KEPT: Final = "palestra_query_parameters"


async def check_query(request: Request) -> None:
    """Refuses unknown query parameters, and several values where the route takes one: 422.

    Raises:
        HttpProblemError: With one problem per parameter, which suggests the most similar name.
    """
    if not request.scope["query_string"]:
        return
    declared = _list_parameters(request.scope["route"])
    sent = Counter(name for name, _ in request.query_params.multi_items())
    found = (_problem(name, times, declared) for name, times in sent.items())
    problems = list(islice((problem for problem in found if problem is not None), MAX_PROBLEMS))
    if problems:
        first = problems[0]
        detail = f"{first.pointer}: {first.message}."
        raise HttpProblemError(422, first.code, detail, errors=problems)


def _list_parameters(route: Any) -> Mapping[str, bool]:
    """Returns the query parameters of a route, which are looked up once and kept with it."""
    kept: Mapping[str, bool] | None = getattr(route, _KEPT, None)
    if kept is None:
        kept = list_parameters(route.dependant)
        setattr(route, _KEPT, kept)
    return kept


def list_parameters(dependant: Dependant) -> dict[str, bool]:
    """Returns the query parameters of a route: for each name, whether it may be repeated."""
    return {
        field.alias: _takes_several(field.field_info.annotation)
        for part in iterate_dependencies(dependant)
        for field in part.query_params
    }


def _takes_several(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in {Union, UnionType}:
        return any(map(_takes_several, get_args(annotation)))
    return origin in {list, tuple, set, frozenset}


def iterate_dependencies(dependant: Dependant) -> Iterator[Dependant]:
    """Yields a dependency and all its transitive dependencies."""
    yield dependant
    for child in dependant.dependencies:
        yield from iterate_dependencies(child)


def _problem(name: str, times: int, declared: Mapping[str, bool]) -> FieldProblem | None:
    if name not in declared:
        return _field_problem(
            name, "unknown_parameter", f"unknown parameter{_instead(name, declared)}"
        )
    if times > 1 and not declared[name]:
        return _field_problem(
            name, "repeated_parameter", f"is given {times} times, this route takes it once"
        )
    return None


def _instead(name: str, declared: Mapping[str, Any]) -> str:
    near = suggest_nearest(name[:_MAX_NAME], declared)
    if near:
        return near
    return f"; this route takes {', '.join(declared)}" if declared else "; this route takes none"


def _field_problem(name: str, code: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=f"query{build_pointer((name,))}", code=code, message=message)
