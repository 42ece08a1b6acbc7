"""One HTTP connection to a server: bearer token, retries, problem details, streamed answers.

Only requests that are safe to repeat are retried, and those that the server did not execute since
there were too many; problem details are raised as exceptions.

Independent of the API's resources.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from palestra.addresses import AddressError, parse_server_address
from palestra.backoff import Backoff
from palestra.contract.answers import Answer, read_answer
from palestra.contract.documents import Document, Patch
from palestra.contract.views import Page, Problem
from palestra.errors import UnexpectedAnswerError, UnreachableError, build_error
from palestra.telemetry.transport import describe_proxy_limit, open_client

PREFIX: Final = "/api/v1"

STATEMENT_DEADLINE: Final = "statement_deadline"
"""Code of the refusal of a request that the database could not answer within its limit."""
RETRIED_STATUSES: Final = frozenset({429, 502, 503, 504})
MAX_WAIT_SECONDS: Final = 10.0


class Connection:
    """Requests to one server with one token.

    Args:
        server: Base URL.
        token: API token; `None` for a login, whose cookie is kept.
        timeout: Seconds for each of connecting, sending and receiving.
        retries: How often an idempotent request is repeated when no answer arrives or the server
            is busy.
        sleep: Called with seconds to wait; tests replace it.

    Raises:
        UnreachableError: If `server` is not the address of a server.
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
            self._server = parse_server_address(server)
        except AddressError as error:
            raise UnreachableError(f"the address of the server {error}") from None
        self._http = open_client(self._server, token, timeout=timeout)
        self._retries = retries
        self.sleep = sleep

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
        parameters: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Returns the answer to a POST.

        With a `key`, sent as `Idempotency-Key`, it is retried like a GET.
        """
        return self.send(kind, "POST", path, body=body, parameters=parameters, key=key)[0]

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

        Args:
            kind: Type of the answer.
            method: Method of the request.
            path: Path below `/api/v1`.
            body: JSON document of the request.
            parameters: Query parameters.
            key: Sent as `Idempotency-Key`; such a request is retried, as a GET is.

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

    def poll(self, kind: type[Answer], path: str, body: Document, seconds: float) -> Answer:
        """Returns the answer to a POST that changes nothing and may take `seconds`; retried.

        Raises:
            PalestraError: If the server refused, cannot be reached or answers something else.
        """
        request = self._http.build_request(
            "POST",
            PREFIX + path,
            content=body.model_dump_json(),
            headers={"Content-Type": "application/json"},
            timeout=httpx.Timeout(30.0, read=seconds + 30.0),
        )
        return read(kind, self._with_retries(request, again=True))

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
        backoff = Backoff(longest=MAX_WAIT_SECONDS)
        for left in range(self._retries, -1, -1):
            asked = 0.0
            try:
                answer = self._http.send(request, stream=stream)
            except httpx.TransportError as error:
                if left == 0 or not again:
                    raise self.unreachable(error) from None
            else:
                # A request over the rate was not executed, so any may be sent again.
                is_retried = again or answer.status_code == httpx.codes.TOO_MANY_REQUESTS
                if answer.status_code not in RETRIED_STATUSES or left == 0 or not is_retried:
                    return answer
                if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and _is_too_slow(answer):
                    return answer
                asked = _retry_after(answer)
                answer.close()
            self.sleep(min(backoff.compute_next_wait(asked), MAX_WAIT_SECONDS))
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
        rest = b""
        for piece in self.pieces(path, parameters):
            *complete, rest = (rest + piece).split(b"\n")
            yield from complete

    def pieces(self, path: str, parameters: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """Yields the bytes of a streamed answer as they are received.

        Raises:
            PalestraError: If the server refused, or the connection broke before the end.
        """
        request = self._http.build_request("GET", PREFIX + path, params=clean(parameters))
        answer = self._with_retries(request, again=True, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                read(Problem, answer)
            yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise self.unreachable(error) from None
        finally:
            answer.close()

    @contextmanager
    def stream(
        self,
        path: str,
        parameters: Mapping[str, Any],
        headers: Mapping[str, str],
        silence: float,
    ) -> Iterator[httpx.Response]:
        """Opens a streamed answer to a GET, which is not retried.

        Args:
            path: Path below `/api/v1`.
            parameters: Query parameters.
            headers: Headers of the request.
            silence: Seconds without data after which `httpx.ReadTimeout` is raised.

        Raises:
            PalestraError: If the server refused.
            httpx.TransportError: If the connection is lost.
        """
        timeout = httpx.Timeout(30.0, read=silence)
        with self._http.stream(
            "GET", PREFIX + path, params=clean(parameters), headers=headers, timeout=timeout
        ) as answer:
            if answer.status_code != httpx.codes.OK:
                answer.read()
                read(Problem, answer)
            yield answer

    def unreachable(self, error: Exception) -> UnreachableError:
        """Returns the error of a server that does not answer."""
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
        if limit := describe_proxy_limit(answer):
            raise UnexpectedAnswerError(f"{where}: {limit}") from None
        raise UnexpectedAnswerError(
            f"{where} answered {answer.status_code} in a form that this client does not know: is "
            "it a Palestra server of a similar version?"
        ) from None
    raise build_error(problem)


def _is_too_slow(answer: httpx.Response) -> bool:
    """Returns whether the server gave up the request at a deadline, as it would again."""
    return STATEMENT_DEADLINE.encode() in answer.read()


def _retry_after(answer: httpx.Response) -> float:
    try:
        return float(answer.headers["Retry-After"])
    except (KeyError, ValueError):
        return 0.0
