"""Query parameters of lists.

The services validate the values; the bounds declared here appear in the OpenAPI document.
"""

from typing import Annotated, Any

from fastapi import Query

from app.domain.paging import MAX_LIMIT, PageRequest

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Items per page.")]
Cursor = Annotated[
    str | None, Query(max_length=1_024, description="`next_cursor` of the page before.")
]


def declare_page_request(default_sort: str, columns: tuple[str, ...]) -> Any:
    """Returns the dependency that reads `limit`, `cursor` and `sort`."""
    hint = f"One of {', '.join(columns)}; with `-` in front to reverse."

    async def read(
        limit: Limit = 50,
        cursor: Cursor = None,
        sort: Annotated[str, Query(max_length=64, description=hint)] = default_sort,
    ) -> PageRequest:
        return PageRequest(limit=limit, cursor=cursor, sort=sort)

    return read
