"""Moves an experiment to another project.

The path names the project as `{slug}`: the request concerns a second project of the caller, so it
is not limited to the first.
"""

from typing import Annotated

from fastapi import Depends, Path

from app.api.auth import ExperimentMover
from app.api.deps import StoreDep, WriteSession
from app.api.resource_router import ResourceRouter
from app.api.strict_body import TINY, JsonBody
from app.services import moves
from palestra.contract.moves import MoveRequest
from palestra.contract.resources import ExperimentDetail

router = ResourceRouter(prefix="/projects/{slug}/experiments", tags=["experiments"])


@router.post("/{experiment_id}:move", responses={409: {}})
async def move_experiment(
    slug: Annotated[str, Path(max_length=64, description="Slug of the project.")],
    experiment_id: str,
    principal: ExperimentMover,
    body: Annotated[MoveRequest, Depends(JsonBody(MoveRequest, limit=TINY))],
    session: WriteSession,
    store: StoreDep,
) -> ExperimentDetail:
    """Moves an experiment with its runs, jobs, curves and files to another project.

    The caller must be a maintainer of both projects, and all jobs must have ended.
    """
    return await moves.move(session, principal, store, slug, experiment_id, body.to)
