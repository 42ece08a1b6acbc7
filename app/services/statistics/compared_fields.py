"""Flattens definitions and finds the fields that differ between runs. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from palestra.contract.comparison import ComparedField
from palestra.contract.documents import encode_canonical_json

NO_PARAMETER: Final = frozenset({"name", "notes", "schema_version"})
"""Members of a definition that are no parameter of the training."""

Fields = Mapping[str, JsonValue]
"""Values by path."""


def flatten(value: Any, prefix: str = "") -> dict[str, JsonValue]:
    """Returns the leaves of a definition by path: nested names joined by dots.

    A list is a leaf unless it holds objects, whose places in it are part of the path.
    """
    return dict(_walk({k: v for k, v in value.items() if k not in NO_PARAMETER}, prefix))


def _walk(value: Any, path: str) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _walk(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}.{index}")
    else:
        yield path, value


def compare_fields(members: Sequence[Sequence[Fields]]) -> list[ComparedField]:
    """Returns each field with its distinct values in each member.

    Args:
        members: The fields of each run of each member.

    Returns:
        The fields in the order in which the runs have them. A field that a run lacks differs from
        one that it has.
    """
    paths = dict.fromkeys(path for runs in members for fields in runs for path in fields)
    found = []
    for path in order_paths(paths):
        values = [_distinct(fields[path] for fields in runs if path in fields) for runs in members]
        lacking = any(path not in fields for runs in members for fields in runs)
        keys = {encode_canonical_json(value) for some in values for value in some}
        found.append(ComparedField(path=path, differs=lacking or len(keys) > 1, values=values))
    return found


def list_differing_fields(definitions: Sequence[Any]) -> list[str]:
    """Returns the paths of the fields in which definitions differ.

    Names of agents and functions come first, and fields that some definitions lack come last: they
    mostly follow from the names.
    """
    if len(definitions) < 2:
        return []
    fields = compare_fields([[flatten(definition)] for definition in definitions])
    differing = [field for field in fields if field.differs]
    differing.sort(key=lambda field: (not field.path.endswith(".name"), not all(field.values)))
    return [field.path for field in differing]


def order_paths(paths: Mapping[str, None]) -> list[str]:
    """Returns the paths with those of one parent beside each other, in order of appearance."""
    places: dict[str, int] = {}
    for path in paths:
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            places.setdefault(".".join(parts[:end]), len(places))
    return sorted(paths, key=lambda path: _place(path, places))


def _place(path: str, places: Mapping[str, int]) -> list[int]:
    parts = path.split(".")
    return [places[".".join(parts[:end])] for end in range(1, len(parts) + 1)]


def _distinct(values: Iterator[JsonValue]) -> list[JsonValue]:
    return list({encode_canonical_json(value): value for value in values}.values())
