"""Query parameters of the lists of runs and experiments: a filter, and further columns."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from app.api.paging import MAX_KEY_LENGTH
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


Filter = Annotated[
    str,
    Query(
        max_length=MAX_FILTER,
        description="Terms that must all hold, for example `agent:ppo env:~Ant "
        "evaluation/mean.best>3000 state:running,queued created:<7d -user:ada`.",
    ),
]


async def read_list_selection(
    user: SubmittedBy,
    filter: Filter = "",  # noqa: A002 - the name of the parameter
    columns: Annotated[
        tuple[Annotated[str, Query(max_length=MAX_KEY_LENGTH)], ...],
        Query(
            max_length=50, description="Keys as of `sort`, whose values are returned in `values`."
        ),
    ] = (),
) -> ListSelection:
    """Reads which rows a list shows, and its columns."""
    return ListSelection(user, filter, columns)


Selected = Annotated[ListSelection, Depends(read_list_selection)]


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """Runs by who submitted them and by a filter, the keys of groups, and a metric.

    Attributes:
        user: Login name; `None` for all users.
        filter: See `palestra.contract.filters`.
        by: Keys whose values the runs of a group share.
        metric: Key of the values whose mean is returned.
    """

    user: str | None
    filter: str
    by: tuple[str, ...]
    metric: str


async def read_group_selection(
    user: SubmittedBy,
    filter: Filter = "",  # noqa: A002 - the name of the parameter
    by: Annotated[
        tuple[Annotated[str, Query(max_length=MAX_KEY_LENGTH)], ...],
        Query(
            max_length=4,
            description="Fields such as `agent`, `env` or `state`, or members of the definition "
            "such as `agent.learning_rate`; without one all runs are one group.",
        ),
    ] = (),
    metric: Annotated[
        str,
        Query(
            max_length=MAX_KEY_LENGTH,
            description="A series with its statistic, or a field that is a number.",
        ),
    ] = "evaluation/mean.last",
) -> GroupSelection:
    """Reads which runs are grouped, and how."""
    return GroupSelection(user, filter, by, metric)
