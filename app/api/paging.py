"""Query parameters of lists.

The services validate the values; the bounds declared here appear in the OpenAPI document.
"""

from typing import Annotated, Any, Final

from fastapi import Query

from app.domain.paging import MAX_CURSOR, MAX_LIMIT, PageRequest
from palestra.contract.list_order import MAX_SORT

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Items per page.")]
Cursor = Annotated[
    str | None, Query(max_length=MAX_CURSOR, description="`next_cursor` of the page before.")
]


def declare_page_request(
    default_sort: str, columns: tuple[str, ...], further: str = "", *, keys: int = 1
) -> Any:
    """Returns the dependency that reads `limit`, `cursor` and `sort`.

    Args:
        default_sort: Order without the parameter.
        columns: Names of the columns.
        further: Describes other keys of the order.
        keys: Largest number of keys of one order.
    """
    hint = f"One of {', '.join(columns)}{further}; with `-` in front to reverse."
    if keys > 1:
        hint += (
            f" Up to {keys} keys with commas between them: rows with the same value of one are in "
            "the order of the next, and rows without a value come last."
        )
    longest = 64 if keys == 1 else MAX_SORT

    async def read(
        limit: Limit = 50,
        cursor: Cursor = None,
        sort: Annotated[str, Query(max_length=longest, description=hint)] = default_sort,
    ) -> PageRequest:
        return PageRequest(limit=limit, cursor=cursor, sort=sort)

    return read


OF_LISTS: Final = (
    ", another field of the filter, a member of the definition like `agent.gamma`, a series like "
    "`evaluation/mean.best` (`.last`, `.best`, `.mean10`, `.count`), or a threshold of the project "
    "like `reached.NAME` (`.env_step`, `.seconds`)"
)
"""Describes the keys of the lists of runs and experiments."""
MAX_KEY_LENGTH: Final = 200
