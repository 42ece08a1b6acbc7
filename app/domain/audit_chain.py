"""The hash chain of the audit log: each entry's hash covers its content and the hash before it.

Pure. An entry without a value has no member of that name in the hashed document, so that columns
that are added later leave the hashes of older entries as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from palestra.contract.documents import hash_document

GENESIS: Final = "0" * 64
"""Stands for the hash before the first entry."""


@dataclass(frozen=True, slots=True)
class ChainPlace:
    """An entry's place in the chain: its id and its hash."""

    id: int
    hash: str


BEGIN: Final = ChainPlace(0, GENESIS)
"""The place before the first entry."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first entry at which a chain is broken, and how."""

    kind: Literal["changed", "missing", "replaced", "added", "end_lost", "checkpoint"]
    entry: int
    message: str


def hash_entry(content: Mapping[str, Any], previous_hash: str) -> str:
    """Returns the hash of an entry: 64 hexadecimal digits of a SHA-256.

    Args:
        content: Members of the entry as JSON values, the time as whole microseconds since the Unix
            epoch. Members that are `None` are left out.
        previous_hash: Hash of the entry before it, or `GENESIS`.

    Raises:
        ValueError: If a number is not finite.
    """
    stated = {name: value for name, value in content.items() if value is not None}
    return hash_document({**stated, "previous_hash": previous_hash})


def compare_to_chain(
    before: ChainPlace, row: ChainPlace, stated: str, computed: str
) -> ChainFault | None:
    """Returns the fault of an entry that does not continue the chain; `None` without a fault.

    Args:
        before: The entry before it.
        row: The entry's id and stored hash.
        stated: The hash that the entry names as the one before it.
        computed: The hash of the entry's content (`hash_entry`).
    """
    if row.id != before.id + 1:
        return describe_missing_entries(before.id + 1, row.id - 1)
    if computed != row.hash:
        message = f"Entry {row.id} was changed: its content does not give its hash."
        return ChainFault("changed", row.id, message)
    if stated != before.hash:
        message = (
            f"Entry {row.id} does not continue entry {before.id}: one of the two was replaced."
        )
        return ChainFault("replaced", row.id, message)
    return None


def compare_to_stored_end(last: ChainPlace, end: ChainPlace) -> ChainFault | None:
    """Returns the fault of a last entry that differs from the stored end of the chain."""
    if last.id < end.id:
        return describe_missing_entries(last.id + 1, end.id)
    if last.hash != end.hash:
        message = f"Entry {last.id} is not the one that was written last: it was replaced."
        return ChainFault("replaced", last.id, message)
    return None


def describe_missing_entries(first: int, last: int) -> ChainFault:
    """Returns the fault of a chain without the entries from `first` to `last`."""
    which = f"Entry {first} is" if first == last else f"Entries {first} to {last} are"
    return ChainFault("missing", first, f"{which} missing.")
