"""Sends a batch to the server by HTTP POST, and interprets the answer for the sender.

Interprets status and problem codes. Independent of the spool.
"""

import json
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Protocol

import httpx

from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION, read_answer
from palestra.contract.telemetry import TelemetryAck


class SendResult(Enum):
    """The meaning of an answer to a batch."""

    ACKNOWLEDGED = auto()
    REWIND = auto()
    """The server expects another record: continue from `seq`."""
    STALE = auto()
    """The attempt may not write any more."""
    TOO_LARGE = auto()
    """The batch is too large: send fewer records at once."""
    TOO_LARGE_FOR_PROXY = auto()
    """A proxy before the server does not take a batch of this size."""
    REFUSED = auto()
    """A record of the batch can never be accepted."""
    UNKNOWN_TYPE = auto()
    """A record of the batch is of a type that this server does not know: it is older than the
    recorder.
    """
    CONFLICT = auto()
    """A record of the batch is stored already, with another content."""
    LATER = auto()
    """Send the same batch again later."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a batch."""

    result: SendResult
    seq: int = 0
    """With `ACKNOWLEDGED` the last committed record, with `REWIND` the expected one."""
    wait: float = 0.0
    """With `LATER`: seconds that the server asked for."""
    reason: str = ""


class Transport(Protocol):
    """Sends one encoded batch."""

    def __call__(self, batch: bytes) -> Reply:
        """Sends a `TelemetryBatch` as JSON.

        Does not raise for anything that the network or the server does.
        """


_OTHER_RUN: Final = "other_run"
"""A record names a run that the attempt does not carry: a fault of the record, not of the attempt.
"""
_STALE_STATUSES: Final = frozenset({401, 403, 404, 410})
_REFUSED_STATUSES: Final = frozenset({400, 415, 422})
_NOT_A_CHOICE: Final = "not_a_choice"
_RECORD_POINTER: Final = re.compile(r"/records/[0-9]+(/type)?")
_TOO_LARGE: Final = 413
_CONFLICT: Final = 409
_OK: Final = 200
_MAX_WAIT: Final = 60.0


def open_client(server: str, token: str | None, *, timeout: float = 20.0) -> httpx.Client:
    """Returns a client for a Palestra server.

    Proxies of the environment are used, but never to reach this machine.

    Args:
        server: Address of the server as `parse_server_address` returns it.
        token: Sent as bearer token; `None` for requests without one.
        timeout: Seconds for each of connecting, sending and receiving.
    """
    url = httpx.URL(server)
    local = url.host in {"localhost", "127.0.0.1", "::1"}
    headers = {
        **({} if token is None else {"Authorization": f"Bearer {token}"}),
        "User-Agent": "palestra",
        CONTRACT_HEADER: str(CONTRACT_VERSION),
    }
    # Reading the certificates takes a tenth of a second. Plain HTTP does not need them, since
    # this client follows no redirect to HTTPS.
    verify = url.scheme != "http"
    return httpx.Client(
        base_url=server,
        headers=headers,
        timeout=timeout,
        trust_env=not local,
        verify=verify,
    )


class HttpTransport:
    """Posts batches to `/api/v1/attempts/{attempt_id}/telemetry` with the attempt's token.

    Args:
        client: Carries base URL, token and timeouts; not closed here.
        attempt_id: The attempt that the records belong to.
    """

    def __init__(self, client: httpx.Client, attempt_id: str) -> None:
        self._client = client
        self._path = f"/api/v1/attempts/{attempt_id}/telemetry"

    def __call__(self, batch: bytes) -> Reply:
        """Sends one batch; see `Transport`."""
        try:
            answer = self._client.post(
                self._path, content=batch, headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            return Reply(SendResult.LATER, reason=f"{type(error).__name__}: {error}")
        return interpret(answer)


def interpret(answer: httpx.Response) -> Reply:
    """Returns the meaning of an answer to a batch.

    Only problem details of our server end an attempt, never a proxy's page.
    """
    problem = read_problem(answer)
    code, reason = (
        str(problem.get("code", "")),
        f"{answer.status_code} {problem.get('detail') or answer.reason_phrase}",
    )
    if answer.status_code == _OK:
        return _acknowledged(answer)
    if answer.status_code == _TOO_LARGE:
        limit = describe_proxy_limit(answer)
        result = SendResult.TOO_LARGE_FOR_PROXY if limit else SendResult.TOO_LARGE
        return Reply(result, reason=limit or reason)
    if code and (answer.status_code in _REFUSED_STATUSES or code == _OTHER_RUN):
        is_unknown = _names_unknown_type(problem)
        return Reply(SendResult.UNKNOWN_TYPE if is_unknown else SendResult.REFUSED, reason=reason)
    if code and answer.status_code in _STALE_STATUSES:
        return Reply(SendResult.STALE, reason=reason)
    if code and answer.status_code == _CONFLICT:
        return _conflict(code, problem, reason)
    return Reply(SendResult.LATER, wait=retry_after(answer), reason=reason)


def read_problem(answer: httpx.Response) -> dict[str, Any]:
    """Returns the problem details of an answer; an empty object where it holds none."""
    if "json" not in answer.headers.get("content-type", ""):
        return {}
    try:
        document = json.loads(answer.content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def describe_proxy_limit(answer: httpx.Response) -> str:
    """Returns the message for a request whose size a proxy before the server refused.

    Empty for any other answer: the server's own refusals have problem details.
    """
    if answer.status_code != _TOO_LARGE or read_problem(answer).get("code"):
        return ""
    size = answer.request.headers.get("content-length", "so many")
    return (
        f"a proxy before the server refuses a request of {size} bytes (413): raise its limit, "
        "for nginx with `client_max_body_size 0;`"
    )


def retry_after(answer: httpx.Response) -> float:
    """Returns the seconds of a `Retry-After` header, at most a minute; 0 without one."""
    try:
        return min(max(float(answer.headers.get("retry-after", "0")), 0.0), _MAX_WAIT)
    except ValueError:
        return 0.0


def _names_unknown_type(problem: dict[str, Any]) -> bool:
    """Returns whether a batch is refused because of the type of a record."""
    errors = problem.get("errors")
    return isinstance(errors, list) and any(
        isinstance(one, dict)
        and one.get("code") == _NOT_A_CHOICE
        and _RECORD_POINTER.fullmatch(str(one.get("pointer"))) is not None
        for one in errors
    )


def _acknowledged(answer: httpx.Response) -> Reply:
    try:
        return Reply(
            SendResult.ACKNOWLEDGED, seq=read_answer(TelemetryAck, answer.content).acked_seq
        )
    except ValueError:
        return Reply(
            SendResult.LATER, reason="the answer is no acknowledgement: is there a proxy between?"
        )


def _conflict(code: str, problem: dict[str, Any], reason: str) -> Reply:
    expected = problem.get("expected_seq")
    if code == "seq_gap" and isinstance(expected, int) and expected >= 1:
        return Reply(SendResult.REWIND, seq=expected, reason=reason)
    if code == "seq_conflict":
        return Reply(SendResult.CONFLICT, reason=reason)
    return Reply(SendResult.STALE, reason=reason)
