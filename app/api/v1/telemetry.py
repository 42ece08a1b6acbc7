"""The route that receives telemetry batches: curves, logs and records of snapshots."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from app.api import strict_body, telemetry_route
from app.api.auth import AttemptCaller
from app.api.telemetry_route import TelemetryRoute
from app.services.telemetry.batches import Delivery
from palestra.contract.telemetry import MAX_BATCH_BYTES, TelemetryAck, TelemetryBatch

router = APIRouter(tags=["telemetry"], route_class=TelemetryRoute)


async def _read(request: Request, attempt_id: str) -> Delivery:
    return await telemetry_route.read_batch(request, attempt_id)


setattr(_read, strict_body.BODY_MODEL, TelemetryBatch)
setattr(_read, strict_body.BODY_REQUIRED, True)
setattr(_read, strict_body.BODY_LIMIT, MAX_BATCH_BYTES)


@router.post("/attempts/{attempt_id}/telemetry", responses={409: {}})
async def take_telemetry(
    request: Request,
    _caller: AttemptCaller,
    delivery: Annotated[Delivery, Depends(_read)],
) -> TelemetryAck:
    """Takes consecutive records of an attempt, each exactly once. Answers after the commit.

    409 `seq_gap` has the record to continue from in `expected_seq`; 409 `seq_conflict` means that a
    number was used for other content, since a record that is sent again has the same bytes; 409
    `stale_attempt` means that the attempt may not write any more.
    """
    return await telemetry_route.take(request, delivery)
