"""Makes pages of rows."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from app.db.repositories.keyset_pages import encode_key
from app.domain.paging import Keyset, PageRequest, encode_cursor
from palestra.contract.views import Page

Row = TypeVar("Row")
Item = TypeVar("Item")


async def cut(
    rows: Sequence[Row],
    request: PageRequest,
    keys: Keyset,
    view: Callable[[Sequence[Row]], Awaitable[Sequence[Item]]],
) -> Page[Item]:
    """Returns the page for `rows`, which hold one row more if there is a next page."""
    shown = rows[: keys.limit]
    more = len(rows) > keys.limit
    last = _place(shown[-1], keys.column) if more else None
    return Page(
        items=list(await view(shown)),
        next_cursor=None if last is None else encode_cursor(request.sort, *last),
    )


def _place(row: Any, column: str) -> tuple[tuple[Any], str]:
    return (encode_key(getattr(row, column)),), str(row.id)


def find_next(keys: Sequence[tuple[str, tuple[Any, ...]]], request: PageRequest) -> str | None:
    """Returns the cursor of the next page.

    Args:
        keys: ID and values of the keys of each row, of one row more if there is a next page.
        request: The request for this page.
    """
    if len(keys) <= request.limit:
        return None
    row_id, values = keys[request.limit - 1]
    return encode_cursor(request.sort, tuple(map(encode_key, values)), row_id)
