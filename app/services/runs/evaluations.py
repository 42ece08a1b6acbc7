"""Evaluations of runs."""

from collections.abc import Sequence

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.repositories import evaluations as rows
from app.domain.paging import PageRequest, build_keyset
from app.domain.principal import Principal
from app.services.runs import runs
from app.services.views import pages
from app.services.views.runs import build_evaluation_view
from palestra.contract.names import EvaluationSource
from palestra.contract.resources import EvaluationView
from palestra.contract.views import Page


async def list_for_run(
    session: Session,
    principal: Principal,
    run_id: str,
    request: PageRequest,
    *,
    superseded: bool = False,
    source: EvaluationSource | None = None,
) -> Page[EvaluationView]:
    """Returns a page of a run's evaluations; superseded ones on request, of one source or of all.

    Sorts by `created_at` and `env_step`.

    Raises:
        NotFoundError: If the project has no such run.
    """
    run = await runs.find(session, principal, run_id)
    keys = build_keyset(request, rows.COLUMNS)
    found = await rows.list_page(session, run.id, keys, superseded=superseded, source=source)
    return await pages.cut(found, request, keys, _views)


async def _views(found: Sequence[EvaluationRow]) -> list[EvaluationView]:
    return [build_evaluation_view(row) for row in found]
