"""The list of experiments."""

from app.db.engine import Session
from app.db.repositories import experiment_lists
from app.db.repositories.keyset_pages import read_place
from app.db.repositories.run_lists import WantedPage
from app.domain.list_filters import ExperimentFilter
from app.domain.paging import PageRequest, read_cursor_of_keys
from app.domain.principal import Principal
from app.services.lists import columns, requests
from app.services.views import pages
from app.services.views.experiments import build_experiment_views
from palestra.contract.resources import ExperimentView
from palestra.contract.views import Page

__all__ = ["ExperimentFilter", "PageRequest", "list_experiments"]


async def list_experiments(
    session: Session, principal: Principal, wanted: ExperimentFilter, request: PageRequest
) -> Page[ExperimentView]:
    """Returns a page of the experiments of the caller's projects, in the order of any key.

    Raises:
        InvalidError: If filter, key, columns or page are not valid.
    """
    named = requests.read_terms(wanted.filter, "experiments", principal)
    names_archived = any(term.field == "archived" for term in named)
    found = await requests.resolve(
        session,
        principal,
        "experiments",
        terms=[*wanted.list_terms(names_archived=names_archived), *named],
        sort=request.sort,
        columns=wanted.columns,
    )
    orders, scope = found.orders, found.scope
    types = [await experiment_lists.find_key_type(session, one, scope) for one in orders]
    place = read_place(read_cursor_of_keys(request, len(orders)), types)
    page = WantedPage(found.terms, orders, scope, place, request.limit)
    listed = await experiment_lists.list_page(session, page)
    shown = [row for row, _ in listed[: request.limit]]
    views = await build_experiment_views(session, shown)
    views = await columns.add_to_experiments(session, views, shown, found)
    keys = [(row.id, value) for row, value in listed]
    return Page(items=views, next_cursor=pages.find_next(keys, request))
