"""Runs that a filter of the list of runs finds, for queries over all of them."""

from app.db.engine import Session
from app.db.repositories import run_lists
from app.db.repositories.run_lists import WantedPage
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.services.lists import requests


async def list_ids(session: Session, principal: Principal, text: str, limit: int) -> list[str]:
    """Returns the runs that a filter finds, oldest first, at most `limit`.

    Raises:
        InvalidError: Any fault of the filter, or `empty_group` if it finds no run; its pointer is
            `/filter`.
    """
    try:
        terms = requests.read_terms(text, "runs", principal)
        found = await requests.resolve(
            session, principal, "runs", terms=terms, sort="created", columns=()
        )
    except InvalidError as error:
        raise InvalidError(error.code, error.detail, pointer="/filter", **error.extra) from None
    page = WantedPage(terms, found.order, found.scope, None, limit)
    run_ids = [run_id for run_id, _ in await run_lists.list_page(session, page)]
    if not run_ids:
        raise InvalidError("empty_group", "finds no run: widen it", pointer="/filter")
    return run_ids
