"""Groups runs by fields of their definitions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from app.db.engine import Session
from app.db.repositories import queried_runs
from app.db.repositories.queried_runs import QueriedRun
from app.domain.errors import InvalidError
from palestra.contract.documents import encode_canonical_json
from palestra.contract.problems import suggest_nearest

_SHORT: Final = {"agent": ("agent", "name"), "env": ("env", "id")}
_OF_RUNS: Final = ("experiment", "seed")
_MISSING: Final = object()

Definitions = Mapping[tuple[str, str], Any]
"""Parsed definitions by project and experiment."""


async def load_definitions(session: Session, runs: Sequence[QueriedRun]) -> Definitions:
    """Returns the definitions of the runs."""
    wanted = {(run.project_id, run.experiment_id) for run in runs}
    found = await queried_runs.load_definitions(session, wanted)
    return {key: json.loads(text) for key, text in found.items()}


async def group_runs(
    session: Session, runs: Sequence[QueriedRun], paths: Sequence[str]
) -> list[tuple[dict[str, JsonValue], list[QueriedRun]]]:
    """Returns the values of the fields and the runs that share them, in the order of the runs.

    Raises:
        InvalidError: `unknown_field` if no definition has one of the fields.
    """
    definitions = await load_definitions(session, runs)
    return group_by_fields(runs, definitions, paths)


def group_by_fields(
    runs: Sequence[QueriedRun], definitions: Definitions, paths: Sequence[str]
) -> list[tuple[dict[str, JsonValue], list[QueriedRun]]]:
    """Returns the values of the fields and the runs that share them, in the order of the runs.

    Raises:
        InvalidError: `unknown_field` if no definition has one of the fields.
    """
    _check_fields(paths, list(definitions.values()))
    members: dict[bytes, tuple[dict[str, JsonValue], list[QueriedRun]]] = {}
    for run in runs:
        definition = definitions[run.project_id, run.experiment_id]
        by = {path: read_field(path, run, definition) for path in paths}
        members.setdefault(encode_canonical_json(by), (by, []))[1].append(run)
    return list(members.values())


def read_field(path: str, run: QueriedRun, definition: Any) -> JsonValue:
    """Returns the value of a field; `None` where the definition lacks it."""
    if path == "experiment":
        return run.experiment_id
    if path == "seed":
        return run.seed
    found = _walk(definition, path)
    return None if found is _MISSING else found


def name_group(by: Mapping[str, JsonValue]) -> str:
    """Returns the name of a group: its fields and their values."""
    return ", ".join(
        f"{path}={value if isinstance(value, str) else json.dumps(value)}"
        for path, value in by.items()
    )


def _check_fields(paths: Sequence[str], definitions: Sequence[Any]) -> None:
    for index, path in enumerate(paths):
        if path in _OF_RUNS or any(
            _walk(definition, path) is not _MISSING for definition in definitions
        ):
            continue
        known = {*_OF_RUNS, *_SHORT}.union(*(_list_paths(one) for one in definitions))
        raise InvalidError(
            "unknown_field",
            f"is no field of these definitions{suggest_nearest(path, sorted(known))}",
            pointer=f"/group_by/{index}",
        )


def _walk(definition: Any, path: str) -> Any:
    for name in _SHORT.get(path, path.split(".")):
        if not isinstance(definition, dict) or name not in definition:
            return _MISSING
        definition = definition[name]
    return definition


def _list_paths(value: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield prefix + name
            yield from _list_paths(item, f"{prefix}{name}.")
