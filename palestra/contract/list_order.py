"""The order of the lists of runs and experiments. Pure.

It is one key or several keys with commas between them, for example
`agent,-evaluation/mean.best,-created`: rows with the same value of a key are in the order of the
next one. A minus in front of a key puts its highest value first. Rows without a value of a key come
last, in both directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from palestra.contract.filters import (
    FILTER_FIELDS,
    FilterError,
    Kind,
    Statistic,
    Target,
    parse_key,
)
from palestra.contract.problems import suggest_nearest

MAX_SORT_KEYS: Final = 4
MAX_SORT: Final = 600
"""Characters of an order."""
_ALIASES: Final = {"created_at": "created"}
_UNSORTED: Final = frozenset({"project", "archived", "finding"})
_NAMED: Final = 64


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A key of an order.

    Attributes:
        field: Field, member of the definition, series or threshold.
        kind: Which of these.
        statistic: Which statistic of a series or of a crossing.
        is_descending: Whether the highest value comes first.
    """

    field: str
    kind: Kind
    statistic: Statistic = "last"
    is_descending: bool = False


class OrderError(ValueError):
    """An order that cannot be read.

    Args:
        code: Stable error code.
        message: What is wrong, as a sentence about the parameter `sort`.
        index: Index of the faulty key.
    """

    def __init__(self, code: str, message: str, index: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.index = index


def parse_order(text: str, target: Target) -> tuple[OrderKey, ...]:
    """Returns the keys of an order, of which there is at least one.

    Args:
        text: The order.
        target: The list that is sorted.

    Raises:
        OrderError: `invalid_sort` if a key names nothing by which the list can be sorted,
            `duplicate_sort_key` if two are the same, `too_many_sort_keys` or `sort_too_long`.
    """
    if len(text) > MAX_SORT:
        raise OrderError("sort_too_long", f"sort has more than {MAX_SORT} characters", 0)
    parts = split_order(text)
    if len(parts) > MAX_SORT_KEYS:
        message = f"sort has {len(parts)} keys, and at most {MAX_SORT_KEYS} are taken"
        raise OrderError("too_many_sort_keys", message, MAX_SORT_KEYS)
    keys: list[OrderKey] = []
    for index, part in enumerate(parts):
        key = _read_key(part, target, index, len(parts))
        same = [(one.field, one.kind, one.statistic) for one in keys]
        if (key.field, key.kind, key.statistic) in same:
            first = 1 + same.index((key.field, key.kind, key.statistic))
            message = f"key {index + 1} of sort is the same as key {first}: name each key once"
            raise OrderError("duplicate_sort_key", message, index)
        keys.append(key)
    return tuple(keys)


def split_order(text: str) -> list[str]:
    """Returns the texts of the keys of an order, also where one of them cannot be read."""
    return [part.strip() for part in text.split(",")]


def write_order(parts: Sequence[str]) -> str:
    """Returns the order of the texts of keys."""
    return ",".join(parts)


def _read_key(text: str, target: Target, index: int, number: int) -> OrderKey:
    name = text.removeprefix("-")
    key = _ALIASES.get(name, name)
    try:
        field, kind, statistic = parse_key(key, target)
    except FilterError:
        field, kind, statistic = "", "text", "last"
    is_state = target == "experiments" and field == "state"
    if not field or (kind not in {"series", "threshold"} and (field in _UNSORTED or is_state)):
        names = [name for name, one in FILTER_FIELDS.items() if one.only in {None, target}]
        named = sorted(set(names) - _UNSORTED - ({"state"} if target == "experiments" else set()))
        subject = "sort" if number == 1 else f"key {index + 1} of sort"
        message = (
            f"{subject} must be one of {', '.join(named)}, a member of the definition like "
            "agent.learning_rate, a series like evaluation/mean.best, or a threshold like "
            f"reached.NAME, with - in front to reverse{suggest_nearest(key[:_NAMED], named)}"
        )
        raise OrderError("invalid_sort", message, index)
    return OrderKey(field, kind, statistic, text.startswith("-"))
