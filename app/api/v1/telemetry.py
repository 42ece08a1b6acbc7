"""The route that receives telemetry batches: curves, logs and records of snapshots."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from app.api import strict_body
from app.api.answer_route import AnswerRoute
from app.api.auth import AttemptCaller
from app.api.errors import HttpProblemError
from app.services.telemetry.batches import Delivery
from app.services.telemetry.group_commit import Acknowledger
from palestra.contract.telemetry import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    TelemetryAck,
    TelemetryBatch,
)

router = APIRouter(tags=["telemetry"], route_class=AnswerRoute)


async def _read(request: Request) -> TelemetryBatch:
    raw = await strict_body.read_bytes(request, MAX_BATCH_BYTES)
    request.state.body_size = len(raw)
    strict_body.check_content_type(request)
    try:
        return await strict_body.read_document(raw, TelemetryBatch)
    except HttpProblemError as error:
        if (
            any(
                problem.pointer == "/records" and problem.code == "length"
                for problem in error.errors
            )
            and b'"type"' in raw
        ):
            raise HttpProblemError(
                413,
                "too_large",
                f"A batch holds at most {MAX_BATCH_RECORDS} records. Send less at once.",
            ) from None
        raise


setattr(_read, strict_body.BODY_MODEL, TelemetryBatch)
setattr(_read, strict_body.BODY_REQUIRED, True)
setattr(_read, strict_body.BODY_LIMIT, MAX_BATCH_BYTES)

_ANSWERS: dict[int | str, dict[str, Any]] = {404: {}, 409: {}, 413: {}, 503: {}}


@router.post("/attempts/{attempt_id}/telemetry", responses=_ANSWERS)
async def take_telemetry(
    attempt_id: str,
    request: Request,
    _caller: AttemptCaller,
    batch: Annotated[TelemetryBatch, Depends(_read)],
) -> TelemetryAck:
    """Takes consecutive records of an attempt, each exactly once. Answers after the commit.

    409 `seq_gap` has the record to continue from in `expected_seq`; 409 `seq_conflict` means that a
    number was used for other content; 409 `stale_attempt` means that the attempt may not write any
    more.
    """
    intake: Acknowledger = request.app.state.intake
    delivery = await strict_body.run_for_body(
        request.state.body_size, partial(Delivery.from_batch, attempt_id, batch)
    )
    return TelemetryAck(acked_seq=await intake.take(delivery))
