"""One HTTP connection to a server: bearer token, retries, problem details, live stream.

Only requests that are safe to repeat are retried, and those that the server did not execute since
there were too many; problem details are raised as exceptions.

Independent of the API's resources.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, SSEError
from pydantic import ValidationError

from palestra.backoff import Backoff
from palestra.contract.answers import Answer, read_answer
from palestra.contract.documents import Document, Patch
from palestra.contract.queries import EventView
from palestra.contract.views import Page, Problem
from palestra.errors import PalestraError, UnexpectedAnswerError, UnreachableError, build_error
from palestra.telemetry.transport import open_client

PREFIX: Final = "/api/v1"

_RETRIED_STATUSES: Final = frozenset({429, 502, 503, 504})
_LONGEST_WAIT: Final = 10.0
_STREAM_SILENCE: Final = 60.0
"""Seconds without data after which a stream counts as lost. The server sends a comment every 15 s.
"""


class Connection:
    """Requests to one server with one token.

    Args:
        server: Base URL.
        token: API token; `None` for a login, whose cookie is kept.
        timeout: Seconds for each of connecting, sending and receiving.
        retries: How often an idempotent request is repeated when no answer arrives or the server
            is busy.
        sleep: Called with seconds to wait; tests replace it.
    """

    def __init__(
        self,
        server: str,
        token: str | None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            self._http = open_client(server, token, timeout=timeout)
        except (httpx.InvalidURL, ValueError) as error:
            raise UnreachableError(f"{server!r} is not the address of a server: {error}") from None
        self._server = server.rstrip("/")
        self._retries = retries
        self._sleep = sleep

    def keep_login(self, headers: Mapping[str, str]) -> None:
        """Sends the cookies of a login, and further headers, with each later request.

        Cookies with the attribute `Secure` are also sent over plain HTTP, by which commands on the
        server's own host reach a server behind a proxy.
        """
        cookies = "; ".join(f"{one.name}={one.value}" for one in self._http.cookies.jar)
        self._http.cookies.clear()
        self._http.headers.update({"Cookie": cookies, **headers})

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def get(
        self, kind: type[Answer], path: str, parameters: Mapping[str, Any] | None = None
    ) -> Answer:
        """Returns the answer to a GET below `/api/v1` as a `kind`."""
        return self.send(kind, "GET", path, parameters=parameters)[0]

    def post(
        self,
        kind: type[Answer],
        path: str,
        body: Document | None = None,
        *,
        key: str | None = None,
    ) -> Answer:
        """Returns the answer to a POST.

        With a `key`, sent as `Idempotency-Key`, it is retried like a GET.
        """
        return self.send(kind, "POST", path, body=body, key=key)[0]

    def pages(
        self, kind: type[Answer], path: str, parameters: Mapping[str, Any] | None = None
    ) -> Iterator[Answer]:
        """Yields every item of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.get(Page[kind], path, {**(parameters or {}), "cursor": cursor})  # type: ignore[valid-type]
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def send(
        self,
        kind: type[Answer],
        method: str,
        path: str,
        *,
        body: Document | None = None,
        parameters: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> tuple[Answer, int]:
        """Returns the answer to a request, and its status.

        A GET, and a request with a `key`, is retried.

        Raises:
            PalestraError: If the server refused, cannot be reached or answers something else.
        """
        headers = {"Idempotency-Key": key} if key else {}
        content: str | None = None
        if body is not None:
            content = body.model_dump_json(exclude_unset=isinstance(body, Patch))
            headers["Content-Type"] = "application/json"
        request = self._http.build_request(
            method, PREFIX + path, params=clean(parameters), content=content, headers=headers
        )
        answer = self._with_retries(request, again=method == "GET" or key is not None)
        return read(kind, answer), answer.status_code

    def delete(self, path: str) -> None:
        """Sends a DELETE that is answered without a body.

        Raises:
            PalestraError: If the server refused or cannot be reached.
        """
        request = self._http.build_request("DELETE", PREFIX + path)
        answer = self._with_retries(request, again=False)
        if not answer.is_success:
            read(Problem, answer)

    def _with_retries(
        self, request: httpx.Request, *, again: bool, stream: bool = False
    ) -> httpx.Response:
        backoff = Backoff(longest=_LONGEST_WAIT)
        for left in range(self._retries, -1, -1):
            asked = 0.0
            try:
                answer = self._http.send(request, stream=stream)
            except httpx.TransportError as error:
                if left == 0 or not again:
                    raise self._unreachable(error) from None
            else:
                # A request over the rate was not executed, so any may be sent again.
                is_retried = again or answer.status_code == httpx.codes.TOO_MANY_REQUESTS
                if answer.status_code not in _RETRIED_STATUSES or left == 0 or not is_retried:
                    return answer
                asked = _retry_after(answer)
                answer.close()
            self._sleep(min(backoff.compute_next_wait(asked), _LONGEST_WAIT))
        raise AssertionError("unreachable")

    def content(self, path: str, offset: int) -> Iterator[bytes]:
        """Yields the bytes of a stored file from an offset on.

        Ends early if the connection breaks and the retries fail.

        Raises:
            PalestraError: If the server refused or cannot be reached.
        """
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        request = self._http.build_request("GET", PREFIX + path, headers=headers)
        answer = self._with_retries(request, again=True, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                read(Problem, answer)
            skipped = offset if answer.status_code == httpx.codes.OK else 0
            for chunk in answer.iter_bytes():
                yield chunk[skipped:]
                skipped -= min(skipped, len(chunk))
        except httpx.TransportError:
            return  # the caller sees how much is missing
        finally:
            answer.close()

    def lines(self, path: str, parameters: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """Yields the lines of a streamed answer.

        Raises:
            PalestraError: If the server refused, or the connection broke before the end.
        """
        request = self._http.build_request("GET", PREFIX + path, params=clean(parameters))
        answer = self._with_retries(request, again=True, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                read(Problem, answer)
            rest = b""
            for chunk in answer.iter_bytes():
                *complete, rest = (rest + chunk).split(b"\n")
                yield from complete
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        finally:
            answer.close()

    def events(
        self, path: str, parameters: Mapping[str, Any], after: int | None, *, reconnect: bool = True
    ) -> Iterator[EventView]:
        """Yields events as they happen.

        After a lost connection the stream resumes after the last event that was received.

        Args:
            path: Path of the stream below `/api/v1`.
            parameters: Filters of the stream.
            after: Cursor; `None` begins now.
            reconnect: Whether to reconnect without limit, with growing waits up to 10 s.
        """
        cursor, backoff = after, Backoff(longest=_LONGEST_WAIT)
        while True:
            try:
                for event in self._stream(path, parameters, cursor):
                    cursor = event.id
                    backoff.reset()
                    yield event
            except (httpx.TransportError, SSEError) as error:
                if not reconnect:
                    raise self._unreachable(error) from None
            except PalestraError as error:
                busy = getattr(error, "status", 0) in _RETRIED_STATUSES
                if not (busy and reconnect):
                    raise
            if not reconnect:
                return
            self._sleep(backoff.compute_next_wait())

    def _stream(
        self, path: str, parameters: Mapping[str, Any], cursor: int | None
    ) -> Iterator[EventView]:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if cursor is not None:
            headers["Last-Event-ID"] = str(cursor)
        timeout = httpx.Timeout(30.0, read=_STREAM_SILENCE)
        query = clean({**parameters, "after": cursor})
        with self._http.stream(
            "GET", PREFIX + path, params=query, headers=headers, timeout=timeout
        ) as answer:
            if answer.status_code != httpx.codes.OK:
                answer.read()
                read(EventView, answer)
            for message in EventSource(answer).iter_sse():
                if message.data:
                    yield _event(message.data)

    def _unreachable(self, error: Exception) -> UnreachableError:
        reason = str(error) or type(error).__name__
        return UnreachableError(
            f"{self._server} does not answer ({reason}): is the server running? `palestra up` "
            "starts one"
        )


def encode_path_part(identifier: str) -> str:
    """Encodes an identifier as one component of a URL's path, whatever it contains."""
    return quote(identifier, safe="") or "-"


def clean(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Drops query parameters that are `None`, and writes booleans as `true` and `false`."""
    return {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in (parameters or {}).items()
        if value is not None
    }


def read(kind: type[Answer], answer: httpx.Response) -> Answer:
    """Returns the body of an answer as a `kind`.

    Raises:
        PalestraError: The exception of problem details, or `UnexpectedAnswerError` if the body is
            neither problem details nor a `kind`.
    """
    try:
        if answer.is_success:
            return read_answer(kind, answer.content)
        problem = read_answer(Problem, answer.content)
    except ValidationError:
        where = f"{answer.request.method} {answer.request.url.path}"
        raise UnexpectedAnswerError(
            f"{where} answered {answer.status_code} in a form that this client does not know: is "
            "it a Palestra server of a similar version?"
        ) from None
    raise build_error(problem)


def _event(data: str) -> EventView:
    try:
        return read_answer(EventView, data)
    except ValueError:
        raise UnexpectedAnswerError(
            "the event stream holds something that is not an event"
        ) from None


def _retry_after(answer: httpx.Response) -> float:
    try:
        return float(answer.headers["Retry-After"])
    except (KeyError, ValueError):
        return 0.0
