"""Whether a worker has what a job needs beside GPUs: code, agent, environment, export formats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from palestra.contract.catalogue import Catalogue

_KINDS: Final = ("agents", "model_functions", "input_functions")

Code = Mapping[str, Any]
"""A `palestra.contract.code` document as stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The requirements of a job, from its experiment and its options."""

    kind: str
    """Kind of the definition, `rl` or another."""
    environment: str
    """ID of the environment; empty if it has none."""
    agent: str
    code: Code
    formats: frozenset[str]
    """Export formats."""
    any_version: bool
    """Whether other versions of the same code do."""


def has(catalogue: Mapping[str, Any], needs: Needs) -> bool:
    """Returns whether a worker with this catalogue, as stored, meets the requirements of a job.

    A catalogue without environments or agents offers all built-in ones.
    """
    written = catalogue.get("export_formats", Catalogue().export_formats)
    if not needs.formats <= set(written) or not has_code(
        catalogue, needs.code, needs.environment, any_version=needs.any_version
    ):
        return False
    environments = {environment["id"] for environment in catalogue.get("environments", ())}
    if needs.kind == "rl" and environments and needs.environment not in environments:
        return False
    if needs.code.get("kind") == "entrypoint":
        return True
    agents = {agent["name"] for agent in catalogue.get("agents", ())}
    return needs.kind != "rl" or not agents or needs.agent in agents


def has_code(
    catalogue: Mapping[str, Any], code: Code, environment: str, *, any_version: bool = False
) -> bool:
    """Returns whether a worker has an experiment's code, or any version of its distributions.

    Modules count like distributions.
    """
    return all(
        part in present or (any_version and _origin(part) in map(_origin, present))
        for part, present in _versions(catalogue, code, environment)
    )


def other_versions(
    catalogue: Mapping[str, Any], code: Code, environment: str
) -> list[tuple[Code, Code]]:
    """Returns pairs of an experiment's code and a worker's other version of it."""
    pairs = [
        (part, one) for part, present in _versions(catalogue, code, environment) for one in present
    ]
    return [(part, one) for part, one in pairs if one != part and _origin(one) == _origin(part)]


def _versions(
    catalogue: Mapping[str, Any], code: Code, environment: str
) -> list[tuple[Code, Sequence[Code]]]:
    """Returns the code of an experiment's parts and environment, each with a worker's versions."""
    parts = dict(code)
    of_environment = parts.pop("environment", None)
    found: list[tuple[Code, Sequence[Code]]] = []
    if parts["kind"] == "entrypoint":
        registered = [part for kind in _KINDS for part in catalogue.get(kind, ())]
        found.append((parts, [part["code"] for part in registered if part.get("code")]))
    if of_environment is not None:
        known = [one for one in catalogue.get("environments", ()) if one["id"] == environment]
        found.append((of_environment, [one["code"] for one in known if one.get("code")]))
    return found


def _origin(code: Code) -> tuple[str, str]:
    return code["kind"], code.get("distribution") or code["module"]
