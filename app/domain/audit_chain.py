"""The hash chain of the audit log: each entry's hash covers its content and the hash before it.

Pure. An entry without a value has no member of that name in the hashed document, so that columns
that are added later leave the hashes of older entries as they are.
"""

from collections.abc import Mapping
from typing import Any, Final

from palestra.contract.documents import sha256_of

GENESIS: Final = "0" * 64
"""Stands for the hash before the first entry."""


def entry_hash(content: Mapping[str, Any], previous_hash: str) -> str:
    """Returns the hash of an entry: 64 hexadecimal digits of a SHA-256.

    Args:
        content: Members of the entry as JSON values, the time as whole microseconds since the Unix
            epoch. Members that are `None` are left out.
        previous_hash: Hash of the entry before it, or `GENESIS`.

    Raises:
        ValueError: If a number is not finite.
    """
    stated = {name: value for name, value in content.items() if value is not None}
    return sha256_of({**stated, "previous_hash": previous_hash})
