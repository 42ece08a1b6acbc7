"""`Idempotency-Key`: a repeated request gets the answer of the first one.

See the IETF draft draft-ietf-httpapi-idempotency-key-header.

The key is stored in the transaction of the change. If two requests have the same key at the same
time, one waits in the database for the other.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request, Response
from pydantic import BaseModel

from app.api.auth import CurrentPrincipal
from app.api.deps import WriteSession, get_settings
from app.api.errors import HttpProblemError
from app.db.engine import Session
from app.domain.principal import Principal
from app.services import idempotency
from app.services.idempotency import Answer

MAX_KEY = 255
REPLAYED = "Idempotency-Replayed"


@dataclass(frozen=True, slots=True)
class Once:
    """Executes a change at most once per key."""

    request: Request
    principal: Principal
    session: Session
    key: str | None

    async def __call__(
        self, change: Callable[[], Awaitable[Answer]], project: Callable[[], Awaitable[str]]
    ) -> Response:
        """Returns the answer of `change`, or that of the earlier request with this key.

        Args:
            change: Makes the change and returns its answer.
            project: Returns the ID of the project that the request changes; raises what `change`
                raises for a caller who may not make the request. Called for repetitions too, so
                that a caller who has lost the right gets no stored answer.

        Raises:
            HttpProblemError: 409 if the key was used for another request, or in another project.
        """
        if self.key is None:
            return self._respond(await change(), replayed=False)
        fingerprint = self._fingerprint(await project())
        answer, replayed = await idempotency.run_once(
            self.session, self.principal, self.key, fingerprint, change
        )
        return self._respond(answer, replayed=replayed)

    def _respond(self, answer: Answer, *, replayed: bool) -> Response:
        headers = {REPLAYED: "true"} if replayed else {}
        if answer.location is not None:
            headers["Location"] = get_settings(self.request).public_path + answer.location
        return Response(answer.body, answer.status, headers, "application/json")

    def _fingerprint(self, project_id: str) -> str:
        route = f"{self.request.method} {self.request.scope['path']}\n{project_id}\n".encode()
        return hashlib.sha256(route + self.request.state.raw_body).hexdigest()


KeyHeader = Annotated[
    str | None, Header(description="Repeats of a request with one key change nothing.")
]


async def read_key(idempotency_key: KeyHeader = None) -> str | None:
    """Returns the request's key."""
    key = None if idempotency_key is None else idempotency_key.strip().strip('"')
    if key is not None and not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise HttpProblemError(
            422,
            "invalid_idempotency_key",
            f"Idempotency-Key must be 1 to {MAX_KEY} visible ASCII characters.",
        )
    return key


async def make_once(
    request: Request,
    principal: CurrentPrincipal,
    session: WriteSession,
    key: Annotated[str | None, Depends(read_key)],
) -> Once:
    """Dependency of routes that accept an `Idempotency-Key`."""
    return Once(request, principal, session, key)


def answer(view: BaseModel, status: int, location: str | None = None) -> Answer:
    """Returns a view as the JSON of the response."""
    return Answer(status=status, body=view.model_dump_json().encode(), location=location)


OnceDep = Annotated[Once, Depends(make_once)]
