"""Keyset pagination: page requests and opaque cursors. Pure."""

import base64
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from app.domain.errors import InvalidError

MAX_LIMIT: Final = 500
_MAX_CURSOR: Final = 1_024

Key = str | int | float | None
"""Sort value of a row; `None` where the row has none."""


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
    if not 1 <= page.limit <= MAX_LIMIT:
        raise InvalidError(
            "invalid_limit", f"limit must be from 1 to {MAX_LIMIT}", pointer="query/limit"
        )
    return None if page.cursor is None else _read(page.cursor, page.sort)


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


def encode_cursor(sort: str, value: Key, row_id: str) -> str:
    """Encodes the opaque cursor that continues after a row."""
    return base64.urlsafe_b64encode(json.dumps([sort, value, row_id]).encode()).decode().rstrip("=")


def _read(text: str, sort: str) -> tuple[Key, str]:
    if len(text) > _MAX_CURSOR:
        raise refuse_cursor()
    try:
        sorted_by, value, row_id = json.loads(
            base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        )
    except (ValueError, TypeError, RecursionError):
        raise refuse_cursor() from None
    good = (
        sorted_by == sort
        and isinstance(row_id, str)
        and (value is None or isinstance(value, str | int | float))
        and not isinstance(value, bool)
    )
    if (
        not good
        or (isinstance(value, int) and abs(value) >= 2**63)
        or (isinstance(value, float) and not math.isfinite(value))
        or "\0" in f"{value}{row_id}"
        or not _encodable(f"{value}{row_id}")
    ):
        raise refuse_cursor()
    return value, row_id


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def refuse_cursor() -> InvalidError:
    """Returns the refusal of a cursor that no page of the list gave."""
    return InvalidError(
        "invalid_cursor",
        "invalid cursor: pass next_cursor of the page before, with the same sort",
        pointer="query/cursor",
    )
