"""Parameters of parts that Palestra does not know: free JSON within bounds, and the bounds of the schemas that describe it."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, JsonValue

from palestra.contract.documents import canonical_json

MAX_PARAMETERS_BYTES: Final = 65_536
MAX_SCHEMA_BYTES: Final = 65_536
_LARGEST: Final = 2**63
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def _bounded(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for value in leaves(parameters):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must hold finite numbers only")
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            raise ValueError("must not hold whole numbers of more than 63 bits")
    if len(canonical_json(parameters)) > MAX_PARAMETERS_BYTES:
        raise ValueError(f"must have at most {MAX_PARAMETERS_BYTES} bytes as JSON")
    return parameters


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuses a JSON Schema that is too large, or that refers to anything outside itself.

    Raises:
        ValueError: With a sentence.
    """
    if len(canonical_json(schema)) > MAX_SCHEMA_BYTES:
        raise ValueError(f"a schema of parameters has at most {MAX_SCHEMA_BYTES} bytes as JSON")
    for part in _objects(schema):
        for key in _REFERENCES:
            if not str(part.get(key, "#")).startswith("#"):
                raise ValueError(f"a schema of parameters refers to its own parts only: {key} must begin with #")
    return schema


def leaves(value: Any) -> Iterator[Any]:
    """Yields every value of a JSON document that is neither an object nor an array."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, Mapping):
            stack += part.values()
        elif isinstance(part, list | tuple):
            stack += part
        else:
            yield part


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, Mapping):
            yield part
            stack += part.values()
        elif isinstance(part, list | tuple):
            stack += part


FreeParameters = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], JsonValue], Field(max_length=256), AfterValidator(_bounded)
]
"""Keyword to JSON value."""

ParametersSchema = Annotated[dict[str, Any], AfterValidator(check_schema)]
"""JSON Schema (2020-12) of such parameters."""
