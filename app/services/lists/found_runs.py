"""Runs that a filter of the list of runs finds, for queries over all of them."""

from app.db.engine import Session
from app.db.repositories import run_lists
from app.db.repositories.run_lists import WantedPage
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.services.lists import requests
from app.services.lists.requests import ListRequest


async def list_ids(session: Session, principal: Principal, text: str, limit: int) -> list[str]:
    """Returns the runs that a filter finds, oldest first, at most `limit`.

    Raises:
        InvalidError: Any fault of the filter, or `empty_group` if it finds no run; its pointer is
            `/filter`.
    """
    run_ids = await find_ids(session, principal, text, limit, sort="created")
    if not run_ids:
        raise InvalidError("empty_group", "finds no run: widen it", pointer="/filter")
    return run_ids


async def find_ids(
    session: Session, principal: Principal, text: str, limit: int, *, sort: str
) -> list[str]:
    """Returns the first `limit` runs that a filter finds, in the order of a field.

    Raises:
        InvalidError: Any fault of the filter; its pointer is `/filter`.
    """
    request = await resolve(session, principal, text, sort=sort)
    page = WantedPage(request.terms, request.orders, request.scope, None, limit)
    # A page has one row more if there are more.
    return [run_id for run_id, _ in await run_lists.list_page(session, page)][:limit]


async def resolve(session: Session, principal: Principal, text: str, *, sort: str) -> ListRequest:
    """Returns the request for the runs that a filter finds, in the order of a field.

    Raises:
        InvalidError: Any fault of the filter; its pointer is `/filter`.
    """
    try:
        terms = requests.read_terms(text, "runs", principal)
        return await requests.resolve(
            session, principal, "runs", terms=terms, sort=sort, columns=()
        )
    except InvalidError as error:
        raise InvalidError(error.code, error.detail, pointer="/filter", **error.extra) from None
