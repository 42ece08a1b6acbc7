"""Turns validation errors into field problems: JSON pointer, stable code, sentence.

A problem never contains the refused value.

Used by the server and the command line. Independent of HTTP.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from palestra.contract.views import FieldProblem
from palestra.contract.wording import describe_fault

MAX_PROBLEMS: Final = 50
"""Maximum number of faults in one answer."""

MAX_FAULTS: Final = 1_000
"""Beyond so many only their number is told: pydantic describes all of them or none."""

_MAX_KEY: Final = 64

_WRONG_TYPES: Final = ("_type", "_parsing", "int_from_float", "none_required")

_SCALARS: Final = frozenset({"str", "int", "float", "bool"})
"""Labels of the members of a union of scalars, which pydantic appends to the location."""

_CODES: Final[Mapping[str, str]] = {
    "missing": "required",
    "extra_forbidden": "unknown_field",
    "finite_number": "not_finite",
    "int_parsing_size": "out_of_range",
    "greater_than": "out_of_range",
    "greater_than_equal": "out_of_range",
    "less_than": "out_of_range",
    "less_than_equal": "out_of_range",
    "string_too_short": "length",
    "string_too_long": "length",
    "too_short": "length",
    "too_long": "length",
    "string_pattern_mismatch": "pattern",
    "string_unicode": "not_unicode",
    "literal_error": "not_a_choice",
    "enum": "not_a_choice",
    "union_tag_invalid": "not_a_choice",
    "union_tag_not_found": "required",
    "value_error": "invalid_value",
}


def explain(
    error: ValidationError, model: type[BaseModel] | TypeAdapter[Any] | None = None
) -> tuple[FieldProblem, ...]:
    """Returns the faults of a document, at most 50, in document order, without its values.

    Args:
        error: What pydantic raised.
        model: The model that was validated; gives the nearest name for unknown keys and takes union
            tags out of the pointers.
    """
    if (count := error.error_count()) > MAX_FAULTS:
        message = f"has {count} faults: check that this is the document which is wanted here"
        return (FieldProblem(pointer="", code="too_many_faults", message=message),)
    found: dict[tuple[str, str], FieldProblem] = {}
    for details in error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]:
        problem = _problem(details, model)
        found.setdefault((problem.pointer, problem.code), problem)
    return tuple(
        problem for problem in found.values() if not _is_consequence(problem, found.values())
    )


def _is_consequence(problem: FieldProblem, others: Iterable[FieldProblem]) -> bool:
    """Returns whether pydantic reports an array as too short only because an item is invalid."""
    return problem.code == "length" and any(
        other.pointer.startswith(problem.pointer + "/") for other in others
    )


def suggest_nearest(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean NAME?` for the known name closest to `name`, else an empty string."""
    choices = list(known)
    folded = {choice.lower(): choice for choice in choices}
    matches = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.55)
    parts = [
        choice
        for choice in choices
        if len(choice) > 1 and choice.lower() in name.lower().split("_")
    ]
    initials = [
        choice
        for choice in choices
        if "".join(word[0] for word in choice.split("_") if word) == name.lower()
    ]
    best = [folded[match] for match in matches] or initials or parts
    return f"; did you mean {best[0]}?" if best else ""


def build_pointer(path: Iterable[str | int]) -> str:
    """Returns the JSON pointer (RFC 6901) of a path; the empty string is the whole document."""
    return "".join("/" + _escape(str(part)) for part in path)


def _escape(part: str) -> str:
    clean = part[: _MAX_KEY + 1].encode("utf-8", "replace").decode()
    clean = "".join(character if character.isprintable() else "\ufffd" for character in clean)
    shown = clean if len(clean) <= _MAX_KEY else clean[:_MAX_KEY] + "\u2026"
    return shown.replace("~", "~0").replace("/", "~1")


def _problem(
    details: ErrorDetails, model: type[BaseModel] | TypeAdapter[Any] | None
) -> FieldProblem:
    location, kind = details["loc"], details["type"]
    if len(location) > 1 and location[-1] in _SCALARS and _code(kind) == "wrong_type":
        path, _ = _walk(location[:-1], model)
        return FieldProblem(
            pointer=build_pointer(path),
            code="wrong_type",
            message="must be a string, a number, true, false or null",
        )
    path, parent = _walk(location, model)
    return FieldProblem(
        pointer=build_pointer(path), code=_code(kind), message=_message(details, parent)
    )


def _code(kind: str) -> str:
    return _CODES.get(kind, "wrong_type" if kind.endswith(_WRONG_TYPES) else "invalid_value")


def _message(details: ErrorDetails, parent: type[BaseModel] | None) -> str:
    if details["type"] != "extra_forbidden":
        return describe_fault(details)
    name = str(details["loc"][-1])
    return describe_fault(details) + (
        suggest_nearest(name[:_MAX_KEY], parent.model_fields) if parent else ""
    )


def _walk(
    location: tuple[int | str, ...], model: type[BaseModel] | TypeAdapter[Any] | None
) -> tuple[list[str | int], type[BaseModel] | None]:
    """Follows an error's location through the model to the model that owns its last field.

    Union tags and names of validators are dropped from the location.
    """
    # Pydantic has no public name for it.
    current: list[Any] = [model._type if isinstance(model, TypeAdapter) else model]  # noqa: SLF001
    path: list[str | int] = []
    parent: type[BaseModel] | None = None
    for part in location:
        models = [kind for kind in _unfold(current) if _is_model(kind)]
        field = (
            next((kind.model_fields[part] for kind in models if part in kind.model_fields), None)
            if isinstance(part, str)
            else None
        )
        tagged = [kind for kind in models if isinstance(part, str) and part in _tags(kind)]
        if field is None and len(models) > 1 and tagged:
            current = list(tagged)
            continue
        if isinstance(part, str) and part.startswith(
            ("tagged-union[", "function-", "constrained-", "json-or-python[", "lax-or-strict[")
        ):
            continue
        parent = models[0] if len(models) == 1 else None
        path.append(part)
        current = [field.annotation] if field is not None else _members(current)
    return path, parent


def _tags(kind: type[BaseModel]) -> set[str]:
    literals = (field.annotation for field in kind.model_fields.values())
    return {kind.__name__} | {
        str(value) for annotation in literals for value in _literal_values(annotation)
    }


def _literal_values(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if str(get_origin(annotation)) == "typing.Literal" else ()


def _members(kinds: list[Any]) -> list[Any]:
    return [
        argument
        for kind in _unfold(kinds)
        for argument in get_args(kind)
        if argument is not Ellipsis
    ]


def _unfold(kinds: list[Any]) -> Iterator[Any]:
    for kind in kinds:
        origin = get_origin(kind)
        if origin is Annotated:
            yield from _unfold([get_args(kind)[0]])
        elif origin in {Union, UnionType}:
            yield from _unfold(list(get_args(kind)))
        else:
            yield kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
