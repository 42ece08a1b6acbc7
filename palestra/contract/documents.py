"""The base of every document that crosses a process boundary, and its canonical form."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from palestra.contract.described import Described

JsonScalar = str | int | float | bool | None
"""A leaf of a JSON document."""


class Document(Described):
    """A frozen, strict document: unknown keys, coercions and non-finite numbers are refused.

    Validate documents from JSON bytes (`model_validate_json`): strict mode then reads arrays as tuples and strings as enumerations.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def canonical_json(value: Any) -> bytes:
    """Returns the one JSON form of a value: keys sorted, no white space, UTF-8, defaults filled in for documents.

    Raises:
        ValueError: If a number is not finite.
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256_of(value: Any) -> str:
    """Returns the SHA-256 (64 hexadecimal digits) of the canonical form of `value`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
