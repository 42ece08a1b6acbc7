"""Query parameters of lists.

The services validate the values; the bounds declared here appear in the OpenAPI document.
"""

from typing import Annotated, Any, Final

from fastapi import Query

from app.domain.paging import MAX_LIMIT, PageRequest

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Items per page.")]
Cursor = Annotated[
    str | None, Query(max_length=1_024, description="`next_cursor` of the page before.")
]


def declare_page_request(
    default_sort: str, columns: tuple[str, ...], further: str = "", *, longest: int = 64
) -> Any:
    """Returns the dependency that reads `limit`, `cursor` and `sort`.

    Args:
        default_sort: Order without the parameter.
        columns: Names of the columns.
        further: Describes other keys of the order.
        longest: Characters of the longest key.
    """
    hint = f"One of {', '.join(columns)}{further}; with `-` in front to reverse."

    async def read(
        limit: Limit = 50,
        cursor: Cursor = None,
        sort: Annotated[str, Query(max_length=longest, description=hint)] = default_sort,
    ) -> PageRequest:
        return PageRequest(limit=limit, cursor=cursor, sort=sort)

    return read


OF_LISTS: Final = (
    ", another field of the filter, a member of the definition like `agent.lr`, a series like "
    "`evaluation/mean.best` (`.last`, `.best`, `.mean10`, `.count`), or a threshold of the project "
    "like `reached.NAME` (`.env_step`, `.seconds`)"
)
"""Describes the keys of the lists of runs and experiments."""
LONGEST_KEY: Final = 200
