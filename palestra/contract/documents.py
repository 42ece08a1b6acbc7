"""The base class of documents that processes exchange, and their canonical form."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from palestra.contract.attribute_descriptions import DescribedModel

JsonScalar = str | int | float | bool | None
"""A leaf of a JSON document."""


LONG_ARRAY: Final = 64
"""Items beyond which an array tells its first fault only: pydantic keeps every fault, and a
megabyte can hold a third of a million.
"""


def _find_arrays(schema: CoreSchema, model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yields the schemas of arrays in a model's schema, without those of nested models."""
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict) and node.get("cls", model) is model:
            stack += [value for key, value in node.items() if key != "metadata"]
            if node.get("type") in ("list", "tuple", "set", "frozenset"):
                yield node
        elif isinstance(node, (list, tuple)):
            stack += node


class Document(DescribedModel):
    """A frozen, strict document: unknown keys, coercions and non-finite numbers are refused.

    Inside an answer of the server unknown keys are ignored (`answers.py`).

    Validate documents from JSON bytes (`model_validate_json`): strict mode then reads arrays as
    tuples and strings as enumerations.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema, in which the validation of long arrays stops at the first fault."""
        schema = handler(source)
        for array in _find_arrays(schema, cls):
            if (array.get("max_length") or LONG_ARRAY + 1) > LONG_ARRAY:
                array["fail_fast"] = True
        return schema


class Patch(Document):
    """A change of a resource: members that are not set are not sent, and stay as they are."""


def encode_canonical_json(value: Any) -> bytes:
    """Returns the canonical JSON of a value: sorted keys, no white space, UTF-8.

    In documents, defaults are filled in.

    Raises:
        ValueError: If a number is not finite.
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def hash_document(value: Any) -> str:
    """Returns the SHA-256 (64 hexadecimal digits) of the canonical form of `value`."""
    return hashlib.sha256(encode_canonical_json(value)).hexdigest()
