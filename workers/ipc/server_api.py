"""The HTTP calls of worker and supervisor, and what their answers mean.

Every call either returns the contract's document, or raises
`ServerUnreachableError` (try again) or `RefusedError` (trying again changes nothing).
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import ValidationError

from palestra.contract.answers import Answer, read_answer
from palestra.contract.documents import Document
from palestra.contract.registration import (
    Registration,
    RegistrationAnswer,
    WorkerHeartbeat,
    WorkerHeartbeatAnswer,
)
from palestra.contract.resources import ArtifactDeclaration, ArtifactView
from palestra.contract.work_order import (
    Adoption,
    AdoptionAnswer,
    Claim,
    ClaimAnswer,
    FollowAnswer,
    FollowRequest,
    Release,
    Renewal,
    RenewalAnswer,
    SnapshotFileRef,
)
from palestra.telemetry.transport import describe_proxy_limit, read_problem, retry_after

_JSON: Final = {"Content-Type": "application/json"}
_CHUNK: Final = 256 * 1024
_RETRYABLE: Final = frozenset({408, 425, 429})
_CLIENT_ERRORS: Final = range(400, 500)
_UNAUTHORIZED: Final = frozenset({401, 403})
_CONFLICT: Final = 409
_ENDED: Final = frozenset({"stale_attempt", "attempt_ended"})


class ServerUnreachableError(Exception):
    """The server is unreachable or busy. `wait` holds its `Retry-After` in seconds."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class DamagedError(ServerUnreachableError):
    """A transfer had a wrong size or SHA-256."""


class RefusedError(Exception):
    """The server refused the request, with problem details."""

    def __init__(self, status: int, problem: Mapping[str, object]) -> None:
        super().__init__(f"{status} {problem.get('code')}: {problem.get('detail')}")
        self.status = status
        self.code = str(problem.get("code", ""))
        expected = problem.get("expected_seq")
        self.expected_seq = expected if isinstance(expected, int) else None
        busy = problem.get("busy_slots")
        self.busy_slots = frozenset[int](busy if isinstance(busy, list) else ())

    @property
    def ends_attempt(self) -> bool:
        """Whether the attempt may not write any more.

        Its token is revoked, or a newer attempt holds the fence.
        """
        return self.status in _UNAUTHORIZED or (self.status == _CONFLICT and self.code in _ENDED)


class WorkerApi:
    """Requests with a worker's own secret; `register` also takes an enrolment token."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def register(self, registration: Registration) -> RegistrationAnswer:
        """Registers the worker; the same name and pool again is the same worker."""
        return _post(self._client, "/api/v1/workers", registration, RegistrationAnswer)

    def heartbeat(self, worker_id: str, heartbeat: WorkerHeartbeat) -> WorkerHeartbeatAnswer:
        """Sends a heartbeat and returns the server's answer."""
        return _post(
            self._client, f"/api/v1/workers/{worker_id}:heartbeat", heartbeat, WorkerHeartbeatAnswer
        )

    def adopt(self, attempt_id: str, adoption: Adoption) -> AdoptionAnswer:
        """Adopts an attempt of this worker whose supervisor died while it uploaded results.

        The server refuses where the attempt has ended.
        """
        return _post(self._client, f"/api/v1/leases/{attempt_id}:adopt", adoption, AdoptionAnswer)

    def claim(self, claim: Claim) -> ClaimAnswer:
        """Claims a job. The server refuses a job that cannot be claimed any more."""
        return _post(self._client, "/api/v1/leases", claim, ClaimAnswer)


class AttemptApi:
    """Requests with an attempt's token."""

    def __init__(self, client: httpx.Client, attempt_id: str) -> None:
        self._client = client
        self._lease = f"/api/v1/leases/{attempt_id}"
        self._base = f"/api/v1/attempts/{attempt_id}"

    def renew(self, renewal: Renewal, *, within: float = 20.0) -> RenewalAnswer:
        """Renews the lease and fetches orders.

        Waits for the answer no longer than `within` seconds.
        """
        return _post(self._client, f"{self._lease}:renew", renewal, RenewalAnswer, timeout=within)

    def follow(self, request: FollowRequest) -> FollowAnswer:
        """Requests the next snapshot of a continuous evaluation."""
        return _post(self._client, f"{self._lease}:follow", request, FollowAnswer)

    def release(self, release: Release) -> None:
        """Ends the attempt."""
        _check_answer(
            _call(
                self._client,
                "POST",
                f"{self._lease}:release",
                content=release.model_dump_json(),
                headers=_JSON,
            )
        )

    def declare(self, declaration: ArtifactDeclaration) -> ArtifactView:
        """Declares a file before its upload; repeating it returns the same artifact."""
        return _post(self._client, f"{self._base}/artifacts", declaration, ArtifactView)

    def upload(self, artifact_id: str, path: Path) -> None:
        """Streams the content of a declared file."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(path.stat().st_size),
        }
        _check_answer(
            _call(
                self._client,
                "PUT",
                f"{self._base}/artifacts/{artifact_id}",
                content=_chunks(path),
                headers=headers,
            )
        )

    def download(self, file: SnapshotFileRef, target: Path) -> None:
        """Downloads a file of a snapshot; it appears at `target` only once size and SHA-256 match.

        Raises:
            DamagedError: If it did not match.
            OSError: If the disk is full.
        """
        partial = target.with_name(f"{target.name}.part")
        try:
            with self._client.stream(
                "GET", f"/api/v1/artifacts/{file.artifact_id}/content"
            ) as answer:
                if answer.is_error:
                    answer.read()
                _check_answer(answer)
                digest, size = _save(answer, partial)
        except httpx.HTTPError as error:
            raise ServerUnreachableError(f"{type(error).__name__}: {error}") from error
        if (digest, size) != (file.sha256, file.size):
            raise DamagedError(
                f"{file.name} arrived with {size} of {file.size} bytes or another SHA-256"
            )
        partial.replace(target)


def _save(answer: httpx.Response, path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for chunk in answer.iter_bytes(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        with contextlib.suppress(OSError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while chunk := file.read(_CHUNK):
            yield chunk


def _post(
    client: httpx.Client, path: str, body: Document, model: type[Answer], **options: object
) -> Answer:
    answer = _check_answer(
        _call(client, "POST", path, content=body.model_dump_json(), headers=_JSON, **options)
    )
    try:
        return read_answer(model, answer.content)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise ServerUnreachableError(
            f"the answer to {path} is no {model.__name__} (at {where}): other version, or a proxy "
            "between?"
        ) from None


def _call(client: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    try:
        return client.request(method, path, **options)
    except httpx.HTTPError as error:
        raise ServerUnreachableError(f"{type(error).__name__}: {error}") from error


def _check_answer(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    problem = read_problem(answer)
    if (
        problem.get("code")
        and answer.status_code in _CLIENT_ERRORS
        and answer.status_code not in _RETRYABLE
    ):
        raise RefusedError(answer.status_code, problem)
    if limit := describe_proxy_limit(answer):
        raise ServerUnreachableError(limit)
    raise ServerUnreachableError(
        f"{answer.status_code} {problem.get('detail') or answer.reason_phrase}", retry_after(answer)
    )
