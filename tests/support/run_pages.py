"""Pages of runs as clients read them."""

from app.db.engine import Database
from app.domain.principal import Principal
from app.services.runs import runs
from app.services.runs.runs import PageRequest, RunFilter
from palestra.contract.resources import RunView
from palestra.contract.views import Page


async def read_page(
    database: Database, principal: Principal, wanted: RunFilter, request: PageRequest
) -> Page[RunView]:
    """Returns a page of the list of runs, read from its JSON."""
    async with database.read() as session:
        found = await runs.list_runs(session, principal, wanted, request)
    return Page[RunView].model_validate_json(found.encode())
