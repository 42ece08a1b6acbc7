"""Fuzzes a running server by the OpenAPI document that it serves.

No request causes a server error or an undocumented status, with the token of a user, with none, and
with the secret of a worker and the token of an attempt.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from palestra.contract.event_streams import MAX_POLL_SECONDS
from tests.app.test_cli_corpus import REPOSITORY, environment, free_port, start, wait_until_ready
from tests.support.assigned_jobs import assign_job
from tests.support.server_fixture import make_definition, registration

pytestmark = pytest.mark.processes

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
EXAMPLES = int(os.environ.get("PALESTRA_TEST_FUZZ_EXAMPLES", "4"))
FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
REFUSALS = {400, 401, 404, 405, 414, 421, 422, 431}
"""Without a token; all but 401 because the path or the headers already cannot be meant."""
ENDLESS = ("/api/v1/events", "/api/v1/events:stream")
"""Streams that do not end by themselves; other tests read them."""


OF_WORKERS = ("/api/v1/workers", "/api/v1/leases", "/api/v1/attempts", "/api/v1/snapshots")
"""Paths of what workers and attempts do, apart from the artifacts, which have a test of theirs."""


@dataclass(frozen=True)
class Target:
    """Address of a running server, and credentials for it."""

    url: str
    token: str
    enrolment: str
    """Secret with which a worker enrols."""
    directory: Path
    """The server's data directory."""

    @property
    def document(self) -> dict[str, Any]:
        """Returns the OpenAPI document that the server serves."""
        headers = {"Authorization": f"Bearer {self.token}"}
        found: dict[str, Any] = (
            httpx.get(f"{self.url}/api/v1/openapi.json", headers=headers, verify=False, timeout=60)
            .raise_for_status()
            .json()
        )
        for path in ENDLESS:
            found["paths"].pop(path, None)
        return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[Target]:
    directory = tmp_path_factory.mktemp("fuzzed")
    shutil.copy(migrated_sqlite, directory / "palestra.db")
    token, enrolment = (
        _make_token(directory, scopes) for scopes in ("read,submit,admin", "worker")
    )
    port = free_port()
    with (directory / "server.log").open("w") as log:
        # Requests that are refused as too many would test nothing.
        unlimited = {"PALESTRA_API_REQUESTS_PER_SECOND": "0"}
        server = start(directory, "--port", str(port), stderr=log, **unlimited)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(server, url)
            yield Target(url, token, enrolment, directory)
        finally:
            server.terminate()
            server.communicate(timeout=60)


def _make_token(directory: Path, scopes: str) -> str:
    command = [sys.executable, "-m", "app.admin", "token", "--name", "fuzzer", "--scopes", scopes]
    made = subprocess.run(
        command,
        env=environment(directory),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return str(json.loads(made.stdout)["secret"])


def _claim(target: Target, name: str) -> dict[str, tuple[str, str]]:
    """Enrols a worker, which claims a job; returns ID and secret of worker and attempt."""

    def post(path: str, secret: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = httpx.post(f"{target.url}/api/v1{path}", json=body, headers=headers, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()

    document = registration(name=name).model_dump(mode="json")
    worker = post("/workers", target.enrolment, document)
    # Experiments of one definition are one: its budget tells those of two callers apart.
    own = make_definition(name=name, loop={"env_steps": 1_000 + len(name)})
    # Requests of the tests before may have created further projects.
    project = "/projects/default"
    made = post(f"{project}/experiments", target.token, {"definition": own})
    headers = {"Authorization": f"Bearer {target.token}"}
    jobs = httpx.get(
        f"{target.url}/api/v1{project}/jobs?experiment={made['id']}", headers=headers, timeout=60
    ).json()
    claim = {
        "job_id": jobs["items"][0]["id"],
        "expected_attempt": 1,
        "worker_id": worker["worker_id"],
        "slot": 0,
    }
    assign_job(target.directory, claim["job_id"], worker["worker_id"])
    claimed = post("/leases", worker["secret"], claim)
    return {
        "worker_id": (worker["worker_id"], worker["secret"]),
        "attempt_id": (claimed["work_order"]["attempt_id"], claimed["token"]),
    }


@pytest.mark.timeout(400)
@pytest.mark.parametrize("with_token", [True, False])
def test_no_generated_request_causes_a_server_error(target: Target, with_token: bool) -> None:
    operations = [
        found.ok() for found in schemathesis.openapi.from_dict(target.document).get_all_operations()
    ]
    assert len(operations) > 40
    failures = [
        failure
        for operation in operations
        if (failure := _failure(operation, target, with_token=with_token))
    ]
    assert not failures, "\n\n".join(failures)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("parameter", ["worker_id", "attempt_id"])
def test_no_generated_request_of_a_worker_causes_a_server_error(
    target: Target, parameter: str
) -> None:
    """The paths name the worker or the attempt itself, so that the credential is admitted."""
    name, secret = _claim(target, f"fuzzed-{parameter[:-3]}")[parameter]
    operations = [
        operation
        for found in schemathesis.openapi.from_dict(target.document).get_all_operations()
        if (operation := found.ok()).path.startswith(OF_WORKERS)
    ]
    assert len(operations) > 8
    caller = replace(target, token=secret)
    failures = [
        failure
        for operation in operations
        if (failure := _failure(operation, caller, with_token=True, own={parameter: name}))
    ]
    assert not failures, "\n\n".join(failures)


def _failure(
    operation: APIOperation,
    target: Target,
    *,
    with_token: bool,
    own: Mapping[str, str] | None = None,
) -> str:
    try:
        _fuzz(operation, target, with_token=with_token, own=own or {})
    except FailureGroup as group:
        return f"{operation.label}: {group}"
    return ""


def _shorten_wait(body: dict[str, Any]) -> None:
    """Sets a valid wait of a long poll to 0; the default is longer than a call may take."""
    wait = body.get("wait", 0)
    if type(wait) in {int, float} and wait >= 0:
        body["wait"] = wait if wait > MAX_POLL_SECONDS else 0


def _fuzz(
    operation: APIOperation, target: Target, *, with_token: bool, own: Mapping[str, str]
) -> None:
    headers = {"Authorization": f"Bearer {target.token}"} if with_token else {}
    secured = operation.definition.raw.get("security") != []

    @FUZZ
    @given(
        case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    )
    def send(case: Case) -> None:
        case.headers.pop("Authorization", None)
        case.cookies.pop("palestra_session", None)
        for name in own.keys() & case.path_parameters.keys():
            case.path_parameters[name] = own[name]
        if operation.path.endswith("/events:poll") and isinstance(case.body, dict):
            _shorten_wait(case.body)
        answer = case.call(base_url=target.url, headers=headers, timeout=60)
        case.validate_response(answer, checks=CHECKS, headers=headers)
        assert with_token or not secured or answer.status_code in REFUSALS, (
            f"{answer.status_code} without a token"
        )

    send()
