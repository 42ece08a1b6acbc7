"""Keyset pagination: page requests and opaque cursors. Pure."""

import base64
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from app.domain.errors import InvalidError

MAX_LIMIT: Final = 500
MAX_CURSOR: Final = 8_192
"""Characters of a cursor, which holds the values of the keys of a row."""

Key = str | int | float | None
"""Sort value of a row; `None` where the row has none."""
Keys = tuple[Key, ...]
"""Sort values of a row of a list that is sorted by several keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """The requested page of a list.

    Args:
        limit: Largest number of items, from 1 to 500.
        cursor: `next_cursor` of the previous page; `None` for the first.
        sort: Name of the column, with a minus in front for descending order.
    """

    limit: int = 50
    cursor: str | None = None
    sort: str = "-created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyset:
    """A validated page request."""

    column: str
    descending: bool
    limit: int
    after: tuple[Key, str] | None
    """Sort value and ID of the last row of the previous page."""


def read_cursor(page: PageRequest) -> tuple[Key, str] | None:
    """Returns sort value and ID of the last row of the page before; `None` for the first page.

    Raises:
        InvalidError: `invalid_limit` or `invalid_cursor`.
    """
    place = read_cursor_of_keys(page, 1)
    return None if place is None else (place[0][0], place[1])


def read_cursor_of_keys(page: PageRequest, number: int) -> tuple[Keys, str] | None:
    """Returns sort values and ID of the last row of the page before; `None` for the first page.

    Args:
        page: The request.
        number: Number of keys.

    Raises:
        InvalidError: `invalid_limit` or `invalid_cursor`.
    """
    check_limit(page)
    if page.cursor is None:
        return None
    values, row_id = _read(page.cursor, page.sort)
    if len(values) != number:
        raise refuse_cursor()
    return values, row_id


def build_keyset(page: PageRequest, columns: Collection[str]) -> Keyset:
    """Returns the validated form of a page request.

    Raises:
        InvalidError: With the codes `invalid_sort`, `invalid_limit` or `invalid_cursor`.
    """
    column = page.sort.removeprefix("-")
    if column not in columns:
        raise InvalidError(
            "invalid_sort",
            f"sort must be one of {', '.join(sorted(columns))}, with - in front to reverse",
            pointer="query/sort",
        )
    after = read_cursor(page)
    return Keyset(
        column=column, descending=page.sort.startswith("-"), limit=page.limit, after=after
    )


def check_limit(page: PageRequest) -> None:
    """Refuses a limit that is out of bounds.

    Raises:
        InvalidError: `invalid_limit`.
    """
    if not 1 <= page.limit <= MAX_LIMIT:
        raise InvalidError(
            "invalid_limit", f"limit must be from 1 to {MAX_LIMIT}", pointer="query/limit"
        )


def encode_cursor(sort: str, values: Keys, row_id: str) -> str:
    """Encodes the opaque cursor that continues after a row with the given sort values."""
    # Escapes of other alphabets would make four long keys longer than a cursor may be.
    text = json.dumps([sort, values, row_id], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(text: str, sort: str) -> tuple[Keys, str]:
    if len(text) > MAX_CURSOR:
        raise refuse_cursor()
    try:
        sorted_by, values, row_id = json.loads(
            base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        )
    except (ValueError, TypeError, RecursionError):
        raise refuse_cursor() from None
    if not isinstance(values, list) or not isinstance(row_id, str):
        raise refuse_cursor()
    if not all(map(_is_key, [*values, row_id])):
        raise refuse_cursor()
    if sorted_by != sort:
        raise InvalidError(
            "invalid_cursor",
            "this cursor is of a page in another order: pass the sort of that page, or leave "
            "cursor out",
            pointer="query/cursor",
        )
    return tuple(values), row_id


def _is_key(value: object) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return "\0" not in value and _encodable(value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) < 2**63)


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def refuse_cursor() -> InvalidError:
    """Returns the refusal of a cursor that no page of the list gave."""
    return InvalidError(
        "invalid_cursor",
        "invalid cursor: pass next_cursor of the page before, with the same sort",
        pointer="query/cursor",
    )
