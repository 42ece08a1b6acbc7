"""Routes whose answers workers read: they send no field that the worker's version does not know."""

import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from app.api.errors import HttpProblemError
from app.domain.answer_fields import FIELDS, cut
from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

_FIRST: Final = 1
"""Version of callers without the header: workers that were released before there was one."""
_MAX_DIGITS: Final = 6


class AnswerRoute(APIRoute):
    """A route that removes the fields from its answer that are newer than the caller's contract."""

    def get_route_handler(self) -> Handler:
        """Returns the handler of requests; answers to older callers have no newer fields."""
        handle = super().get_route_handler()
        model = self.response_model
        if model not in FIELDS:
            return handle

        async def handle_versioned(request: Request) -> Response:
            version = read_contract_version(request)
            response = await handle(request)
            if version >= CONTRACT_VERSION:
                return response
            document = json.loads(bytes(response.body))
            response.body = json.dumps(cut(model, document, version)).encode()
            response.headers["content-length"] = str(len(response.body))
            return response

        return handle_versioned


def read_contract_version(request: Request) -> int:
    """Returns the version of the contract that the caller of a request knows.

    Raises:
        HttpProblemError: 400 if the header is not a whole number from 1.
    """
    sent = request.headers.get(CONTRACT_HEADER)
    if sent is None:
        return _FIRST
    if not (sent.isascii() and sent.isdigit() and len(sent) <= _MAX_DIGITS and int(sent) >= _FIRST):
        raise HttpProblemError(
            400,
            "invalid_contract_version",
            f"{CONTRACT_HEADER} must be a whole number from 1 (this server knows up to "
            f"{CONTRACT_VERSION}). Leave it out to get the answers of version 1.",
        )
    return int(sent)
