"""The route that receives telemetry batches: curves, logs and records of snapshots."""

from typing import Annotated, Final

from fastapi import Depends, Request

from app.api import telemetry_route
from app.api.answer_route import AnswerRoute
from app.api.auth import AttemptCaller
from app.api.resource_router import ResourceRouter
from app.services.telemetry.batches import Delivery
from palestra.contract.telemetry import TelemetryAck

PATH: Final = "/attempts/{attempt_id}/telemetry"

router = ResourceRouter(tags=["telemetry"], route_class=AnswerRoute)


@router.post(PATH, responses={409: {}})
async def take_telemetry(
    request: Request,
    _caller: AttemptCaller,
    delivery: Annotated[Delivery, Depends(telemetry_route.BatchBody())],
) -> TelemetryAck:
    """Takes consecutive records of an attempt, each exactly once. Answers after the commit.

    409 `seq_gap` has the record to continue from in `expected_seq`; 409 `seq_conflict` means that a
    number was used for other content, since a record that is sent again has the same bytes; 409
    `stale_attempt` means that the attempt may not write any more.
    """
    return await telemetry_route.take(request, delivery)
