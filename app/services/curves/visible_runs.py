"""Reads the runs that a query or an export names, as far as the caller may see them."""

from collections.abc import Collection

from app.db.engine import Session
from app.db.repositories import queried_runs
from app.db.repositories.queried_runs import QueriedRun
from app.domain.errors import NotFoundError
from app.domain.principal import Principal


async def load(
    session: Session, principal: Principal, run_ids: Collection[str]
) -> dict[str, QueriedRun]:
    """Returns the runs by ID.

    Raises:
        NotFoundError: If the caller's projects lack one of the runs.
    """
    runs = await queried_runs.load_runs(session, run_ids)
    for run_id in run_ids:
        if run_id not in runs or runs[run_id].project_id not in principal.project_ids:
            raise NotFoundError("run")
    return runs


async def list_ids(
    session: Session, principal: Principal, experiment_id: str, limit: int
) -> list[str]:
    """Returns the runs of an experiment by seed, at most `limit`.

    Raises:
        NotFoundError: If the caller's projects lack the experiment.
    """
    found = await queried_runs.list_run_ids(session, principal.project_ids, experiment_id, limit)
    if found is None:
        raise NotFoundError("experiment")
    return found
