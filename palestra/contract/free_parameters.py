"""Parameters of registered parts, which Palestra does not know: JSON of bounded size.

Also the bounds of the JSON Schemas that describe such parameters.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, JsonValue

from palestra.contract.documents import encode_canonical_json

MAX_PARAMETERS_BYTES: Final = 65_536
MAX_SCHEMA_BYTES: Final = 65_536
MAX_INTEGER: Final = 2**63
"""Whole numbers of free JSON are smaller than this, and not below its negative."""
MAX_SCHEMA_PARTS: Final = 2_000
_DEEPEST: Final = 64
_NAMING: Final = (
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$dynamicRef",
    "$recursiveRef",
)


def _bounded(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for value in iterate_leaves(parameters):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must hold finite numbers only")
        if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
            raise ValueError("must not hold whole numbers of more than 63 bits")
    if len(encode_canonical_json(parameters)) > MAX_PARAMETERS_BYTES:
        raise ValueError(f"must have at most {MAX_PARAMETERS_BYTES} bytes as JSON")
    return parameters


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuses a JSON Schema that is too large, has outside references, or is slow to apply.

    A part is counted each time that it is referred to, and circular references are refused, so that
    validation with the schema takes a bounded time.

    Raises:
        ValueError: With a message for the user.
    """
    if len(encode_canonical_json(schema)) > MAX_SCHEMA_BYTES:
        raise ValueError(f"a schema of parameters has at most {MAX_SCHEMA_BYTES} bytes as JSON")
    if _Expansion(schema).size() > MAX_SCHEMA_PARTS:
        raise ValueError(
            f"a schema of parameters has at most {MAX_SCHEMA_PARTS} parts, each counted as often "
            "as it is referred to"
        )
    return schema


class _Expansion:
    """Computes the size of a schema in which every reference is replaced by its target.

    Args:
        root: The schema.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def size(self) -> int:
        """Returns the number of objects in the expanded schema."""
        return self._size(self._root, 0)

    def _size(self, part: Any, depth: int) -> int:
        if depth > _DEEPEST:
            raise ValueError(
                f"a schema of parameters is nested at most {_DEEPEST} deep, references followed"
            )
        if isinstance(part, list):
            return sum(self._size(one, depth + 1) for one in part)
        if not isinstance(part, dict):
            return 0
        if id(part) in self._open:
            raise ValueError("a schema of parameters must not refer to itself in a circle")
        if id(part) not in self._sizes:
            self._open.add(id(part))
            self._sizes[id(part)] = 1 + sum(
                self._size(one, depth + 1) for one in (*part.values(), self._target(part))
            )
            self._open.discard(id(part))
        return self._sizes[id(part)]

    def _target(self, part: dict[str, Any]) -> Any:
        """Returns the target of a part's reference; `None` if it has none."""
        other = next((key for key in _NAMING if isinstance(part.get(key), str)), None)
        if other is not None:
            raise ValueError(
                f"a schema of parameters refers to its own parts by $ref alone: leave {other} out"
            )
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return None
        if not reference.startswith("#/"):
            raise ValueError(
                "a schema of parameters refers to its own parts only: $ref must begin with #/"
            )
        target: Any = self._root
        for step in reference[2:].split("/"):
            target = (
                target.get(step.replace("~1", "/").replace("~0", "~"))
                if isinstance(target, dict)
                else None
            )
        if isinstance(target, dict):
            return target
        raise ValueError("a schema of parameters has a $ref to a part that it has not")


def iterate_leaves(value: Any) -> Iterator[Any]:
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


FreeParameters = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], JsonValue],
    Field(max_length=256),
    AfterValidator(_bounded),
]
"""Keyword to JSON value."""

ParametersSchema = Annotated[dict[str, Any], AfterValidator(check_schema)]
"""JSON Schema (2020-12) of such parameters."""
