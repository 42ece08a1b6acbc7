"""A Starlette route that answers usual batches of telemetry, beside FastAPI's route of all batches.

FastAPI's routing and dependencies take longer than the decoding of a batch. A request is usual if
it has nothing but a token that was looked up lately, for this attempt, the present version of the
contract and a JSON body. Every other request takes the way of all routes, which refuses what has to
be refused.
"""

from functools import partial
from typing import Final

from fastapi import Request, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from app.api import strict_body
from app.api.auth import NEEDS
from app.api.errors import HttpProblemError
from app.api.strict_body import JsonBody
from app.services.access.attempt_tokens import AttemptTokens
from app.services.telemetry import decoding
from app.services.telemetry.batches import Delivery
from app.services.telemetry.group_commit import Acknowledger
from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION
from palestra.contract.telemetry import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    TelemetryAck,
    TelemetryBatch,
)

_MAX_BYTES_ON_LOOP: Final = 65_536
"""Bytes up to which decoding takes less time than handing the body to a thread."""
_SCHEME: Final = "Bearer "
_PRESENT_CONTRACT: Final = str(CONTRACT_VERSION)


class UsualBatches(Route):
    """A route that takes usual batches alone; see the module."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _answer, methods=["POST"])
        setattr(self, NEEDS, "attempt")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether the route takes a request, and what it adds to the request's scope."""
        match, added = super().matches(scope)
        if match is Match.FULL and _is_usual(Request(scope), added["path_params"]["attempt_id"]):
            return match, {**added, "route": self}
        return Match.NONE, {}


def _is_usual(request: Request, attempt_id: str) -> bool:
    sent = request.headers.getlist("authorization")
    if len(sent) != 1 or not sent[0].startswith(_SCHEME) or request.scope.get("query_string"):
        return False
    if request.headers.get(CONTRACT_HEADER) != _PRESENT_CONTRACT:
        return False
    tokens: AttemptTokens = request.app.state.attempt_tokens
    return tokens.find(sent[0][len(_SCHEME) :]) == attempt_id


async def _answer(request: Request) -> Response:
    ack = await take(request, await read_batch(request, request.path_params["attempt_id"]))
    return Response(b'{"acked_seq":%d}' % ack.acked_seq, media_type="application/json")


class BatchBody(JsonBody[TelemetryBatch]):
    """Dependency that reads a batch, without a model where it is usual."""

    def __init__(self) -> None:
        super().__init__(TelemetryBatch, limit=MAX_BATCH_BYTES)

    async def __call__(  # type: ignore[override]
        self, request: Request, attempt_id: str
    ) -> Delivery:
        """Returns the batch; raises an HTTP problem where it is invalid."""
        return await read_batch(request, attempt_id)


async def read_batch(request: Request, attempt_id: str) -> Delivery:
    """Returns the batch of a request's body.

    Raises:
        HttpProblemError: If the body is no valid batch.
    """
    raw = await strict_body.read_bytes(request, MAX_BATCH_BYTES)
    strict_body.check_content_type(request)
    work = partial(_decode, attempt_id, raw)
    if len(raw) <= _MAX_BYTES_ON_LOOP:
        return work()
    return await strict_body.run_for_body(len(raw), work)


async def take(request: Request, delivery: Delivery) -> TelemetryAck:
    """Commits a batch, and returns the answer."""
    intake: Acknowledger = request.app.state.intake
    return TelemetryAck(acked_seq=await intake.take(delivery))


def _decode(attempt_id: str, raw: bytes) -> Delivery:
    found = decoding.decode_batch(attempt_id, raw)
    if found is not None:
        return found
    try:
        batch = strict_body.parse(raw, TelemetryBatch)
    except HttpProblemError as error:
        is_long = any(one.pointer == "/records" and one.code == "length" for one in error.errors)
        if is_long and b'"type"' in raw:
            raise HttpProblemError(
                413,
                "too_large",
                f"A batch holds at most {MAX_BATCH_RECORDS} records. Send less at once.",
            ) from None
        raise
    return decoding.build_delivery(attempt_id, raw, batch)
