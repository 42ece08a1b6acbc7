"""Resolves the registered parts of a definition in the workers' catalogues.

Parameters are validated against the schemas of the catalogues.

Nothing is imported and no schema is fetched: schemas with external references were refused when
the worker registered.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import jsonschema_rs
from pydantic import ValidationError

from app.domain import environments
from app.domain.errors import InvalidError
from palestra.contract.agents import BUILTIN_AGENTS, RegisteredAgent
from palestra.contract.catalogue import Catalogue, PartDescription
from palestra.contract.code import (
    AnyCode,
    BuiltinCode,
    EntrypointCode,
    add_environment,
    describe_code,
)
from palestra.contract.definition import RlDefinition, SupervisedDefinition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.problems import build_pointer, suggest_nearest

_Definition = RlDefinition | SupervisedDefinition
_MAX_LENGTH: Final = 300


class _PartReference(NamedTuple):
    """A registered part that a definition names, with its path in the definition."""

    kind: str
    """Name of the catalogue's list: `agents`, `model_functions` or `input_functions`."""
    path: tuple[str, ...]
    """Path of the part in the definition."""
    member: str
    """Name of the part's member that holds its parameters."""
    name: str
    parameters: dict[str, Any]


class _Found(NamedTuple):
    use: _PartReference
    description: PartDescription


_WORDS: Final = {
    "agents": "agent",
    "model_functions": "model function",
    "input_functions": "input function",
}


def resolve(
    definition: _Definition, code: AnyCode, workers: Sequence[Catalogue], pool: str
) -> tuple[_Definition, AnyCode]:
    """Returns the definition with the defaults of its registered parts, and the code of the parts.

    Args:
        definition: The submitted or stored definition.
        code: The submitted code; `builtin` accepts the code that the pool's workers have.
        workers: Catalogues of the pool's workers, the latest registration last.
        pool: Name of the pool, for error messages.

    Raises:
        InvalidError: `unknown_agent`, `unknown_environment`, `unknown_part`, `invalid_parameters`
            or `code_mismatch`.
    """
    found = [
        _Found(use, _find(use, code, workers, pool))
        for use in _uses(definition)
        if workers or use.kind == "agents"
    ]
    filled = [_with_defaults(one) for one in found]
    for one in filled:
        _check_parameters(one)
    installed = _code_of(definition, code, found, pool)
    resolved = _replaced(definition, filled)
    if not isinstance(resolved, RlDefinition):
        return resolved, installed
    resolved, environment = environments.resolve(resolved, code, workers, pool)
    return resolved, environments.combine_code(code, installed, environment, pool)


def _uses(definition: _Definition) -> Iterator[_PartReference]:
    if isinstance(definition, RlDefinition):
        if isinstance(definition.agent, RegisteredAgent):
            yield _PartReference(
                "agents",
                ("agent",),
                "parameters",
                definition.agent.name,
                definition.agent.parameters,
            )
        return
    yield _PartReference(
        "model_functions",
        ("estimator",),
        "params",
        definition.estimator.name,
        definition.estimator.params,
    )
    for member in ("train_input", "evaluation_input"):
        part = getattr(definition, member)
        yield _PartReference("input_functions", (member,), "params", part.name, part.params)


def _find(
    use: _PartReference, code: AnyCode, workers: Sequence[Catalogue], pool: str
) -> PartDescription:
    """Returns the latest registered description of a part, one with the requested code first."""
    offered: list[PartDescription] = [part for one in workers for part in getattr(one, use.kind)]
    same = [part for part in offered if part.name == use.name]
    if not same:
        raise _unknown(use, sorted({part.name for part in offered}), pool)
    return next((part for part in same if part.code == add_environment(code, None)), same[-1])


def _unknown(use: _PartReference, known: Sequence[str], pool: str) -> InvalidError:
    word = _WORDS[use.kind]
    names = known or (BUILTIN_AGENTS if use.kind == "agents" else ())
    there_are = (
        f"; there {'is' if len(names) == 1 else 'are'} {', '.join(names[:20])}" if names else ""
    )
    message = (
        f"No worker of the pool {pool} offers this {word}"
        f"{suggest_nearest(use.name, names)}{there_are}. "
        "Install the distribution that registers it on a worker of the pool and start "
        "that worker again, or choose another name."
    )
    code = "unknown_agent" if use.kind == "agents" else "unknown_part"
    return InvalidError(code, message, pointer=build_pointer(("definition", *use.path, "name")))


def _with_defaults(found: _Found) -> _Found:
    properties = found.description.parameters_schema.get("properties", {})
    defaults = {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, dict) and "default" in schema
    }
    return found._replace(use=found.use._replace(parameters={**defaults, **found.use.parameters}))


def _check_parameters(found: _Found) -> None:
    use, schema = found.use, found.description.parameters_schema
    where = ("definition", *use.path, use.member)
    try:
        validator = jsonschema_rs.validator_for(
            schema,
            mask="the value",
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000),
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        message = (
            "The schema of these parameters that the workers gave cannot be read: ask who "
            "maintains the distribution."
        )
        raise InvalidError("invalid_schema", message, pointer=build_pointer(where)) from None
    error = next(validator.iter_errors(use.parameters), None)
    if error is not None:
        reason = error.message[:_MAX_LENGTH]
        message = f"does not fit the schema of this {_WORDS[use.kind]}: {reason}"
        raise InvalidError(
            "invalid_parameters", message, pointer=build_pointer((*where, *error.instance_path))
        )


def _replaced(definition: _Definition, found: Sequence[_Found]) -> _Definition:
    document = definition.model_dump(mode="json")
    for use, _ in found:
        document[use.path[0]][use.member] = use.parameters
    try:
        return (
            type(definition).model_validate_json(encode_canonical_json(document))
            if found
            else definition
        )
    except ValidationError:
        message = (
            "With the defaults of their schema these parameters are more than a definition "
            "may hold. Send fewer or shorter ones."
        )
        raise InvalidError(
            "invalid_parameters", message, pointer=build_pointer(("definition", *found[0].use.path))
        ) from None


def _code_of(definition: _Definition, code: AnyCode, found: Sequence[_Found], pool: str) -> AnyCode:
    code = add_environment(code, None)
    needed = {
        encode_canonical_json(part.code): part.code for _, part in found if part.code is not None
    }
    if len(needed) > 1:
        message = (
            "The parts of this definition are registered by more than one distribution. Put "
            "them into one."
        )
        raise InvalidError("code_mismatch", message, pointer="/code")
    if not needed:
        if isinstance(code, EntrypointCode) and (found or isinstance(definition, RlDefinition)):
            raise InvalidError(
                "code_mismatch",
                "This definition names built-in parts only: leave `code` out.",
                pointer="/code",
            )
        return code
    (installed,) = needed.values()
    if isinstance(code, BuiltinCode) or code == installed:
        return installed
    message = (
        f"The workers of the pool {pool} have {describe_code(installed)}, "
        "not the code that is named here. Leave `code` out to take theirs, or install "
        "the other one on a worker of the pool."
    )
    raise InvalidError("code_mismatch", message, pointer="/code")
