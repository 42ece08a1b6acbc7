"""Query parameters of the lists of runs and experiments: a filter, and further columns."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from app.api.paging import LONGEST_KEY
from app.api.user_filter import SubmittedBy
from palestra.contract.filters import MAX_FILTER


@dataclass(frozen=True, slots=True)
class ListSelection:
    """Rows by who submitted them and by a filter, and the keys of further columns.

    Attributes:
        user: Login name; `None` for all users.
        filter: See `palestra.contract.filters`.
        columns: Keys whose values are returned with each row.
    """

    user: str | None
    filter: str
    columns: tuple[str, ...]


async def read_list_selection(
    user: SubmittedBy,
    filter: Annotated[  # noqa: A002 - the name of the parameter
        str,
        Query(
            max_length=MAX_FILTER,
            description="Terms that must all hold, for example `agent:ppo env:~Ant "
            "evaluation/mean.best>3000 state:running,queued created:<7d -user:ada`.",
        ),
    ] = "",
    columns: Annotated[
        tuple[Annotated[str, Query(max_length=LONGEST_KEY)], ...],
        Query(
            max_length=50, description="Keys as of `sort`, whose values are returned in `values`."
        ),
    ] = (),
) -> ListSelection:
    """Reads which rows a list shows, and its columns."""
    return ListSelection(user, filter, columns)


Selected = Annotated[ListSelection, Depends(read_list_selection)]
