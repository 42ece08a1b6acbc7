"""The filters of the scopes that a caller asks for."""

from collections.abc import Sequence

from app.db.engine import Database
from app.domain.errors import NotFoundError
from app.domain.principal import Principal
from app.services import pools
from app.services.access import rights
from app.services.events.filters import StreamFilter
from palestra.contract.event_streams import SubscriptionRequest


async def build_filters(
    database: Database, principal: Principal, wanted: Sequence[SubscriptionRequest]
) -> list[StreamFilter]:
    """Returns a filter for each subscription.

    Raises:
        NotFoundError: With a pointer to the project that the caller does not see.
    """
    callers = [_limit(principal, one.project, number) for number, one in enumerate(wanted)]
    async with database.read() as session:
        admitted = await pools.load_names_by_project(session)
    filters = []
    for caller, one in zip(callers, wanted, strict=True):
        only = None if one.project is None else min(caller.project_ids)
        filters.append(
            StreamFilter(
                project_ids=caller.project_ids,
                pools=pools.list_visible_to_stream(caller, admitted, only_project=only),
                only_project=only,
                runs=frozenset(one.runs),
                experiments=frozenset(one.experiments),
                types=frozenset(one.types),
            )
        )
    return filters


def _limit(principal: Principal, slug: str | None, number: int) -> Principal:
    if slug is None:
        return principal
    try:
        return rights.limit_to_project(principal, slug)
    except NotFoundError as error:
        error.pointer = f"/subscriptions/{number}/project"
        raise
