"""Fuzzes a running server by the OpenAPI document that it serves.

No request causes a server error or an undocumented status, with the token of a user, with none, and
with the secret of a worker and the token of an attempt.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
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
from tests.app.test_cli_corpus import REPOSITORY, environment
from tests.support.assigned_jobs import assign_job
from tests.support.process_stack import find_free_port
from tests.support.server_fixture import make_definition, registration
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.processes

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
GENERATION = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
REFUSALS = {400, 401, 404, 405, 414, 421, 422, 431}
"""Without a token; all but 401 because the path or the headers already cannot be meant."""
ENDLESS = ("/api/v1/events", "/api/v1/events:stream")
"""Streams that do not end by themselves; other tests read them."""


BUDGETS = count(1_000)
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
            httpx.get(f"{self.url}/api/v1/openapi.json", headers=headers, timeout=PATIENCE_SECONDS)
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
    token, enrolment = _make_tokens(directory)
    port = find_free_port()
    command = ["palestra.cli", "server", "--no-daemons", "--port", str(port)]
    # Requests that are refused as too many would test nothing.
    variables = environment(directory, PALESTRA_API_REQUESTS_PER_SECOND="0")
    log = directory / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", *command], env=variables, stdout=output, stderr=output
        )
    try:
        wait_for(lambda: "server.ready" in log.read_text(), log.read_text)
        yield Target(f"http://127.0.0.1:{port}", token, enrolment, directory)
    finally:
        server.terminate()
        server.wait(PATIENCE_SECONDS)


def _make_tokens(directory: Path) -> tuple[str, str]:
    """Returns the secrets of an administrator's token and of one that enrols workers."""
    options = [
        part
        for name, scopes in (("fuzzer", "read,submit,admin"), ("worker", "worker"))
        for part in ("--token", name, scopes, str(directory / f"{name}.token"))
    ]
    made = subprocess.run(
        [sys.executable, "-m", "app.admin", "prepare", *options],
        env=environment(directory),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    secrets = json.loads(made.stdout)["tokens"]
    return secrets["fuzzer"], secrets["worker"]


def _claim(target: Target, name: str) -> dict[str, tuple[str, str]]:
    """Enrols a worker, which claims a job; returns ID and secret of worker and attempt."""

    def post(path: str, secret: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {secret}"}
        url = f"{target.url}/api/v1{path}"
        answer = httpx.post(url, json=body, headers=headers, timeout=PATIENCE_SECONDS)
        assert answer.is_success, answer.text
        return answer.json()

    document = registration(name=name).model_dump(mode="json")
    worker = post("/workers", target.enrolment, document)
    # Experiments of one definition are one: its budget tells those of two callers apart.
    own = make_definition(name=name, loop={"env_steps": next(BUDGETS)})
    # Requests of the tests before may have created further projects.
    limits = "project=default"
    made = post(f"/experiments?{limits}", target.token, {"definition": own})
    headers = {"Authorization": f"Bearer {target.token}"}
    listing = f"{target.url}/api/v1/jobs?experiment={made['id']}&{limits}"
    jobs = httpx.get(listing, headers=headers, timeout=PATIENCE_SECONDS).json()
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


@pytest.fixture(
    scope="module", params=[3, pytest.param(20, marks=pytest.mark.extended)], ids="{}-cases".format
)
def number(request: pytest.FixtureRequest) -> int:
    """Largest number of requests of each operation."""
    return int(request.param)


@pytest.fixture(scope="module", params=["of-workers", "others"])
def cases(request: pytest.FixtureRequest, target: Target, number: int) -> list[Case]:
    """Valid and invalid requests of the operations of workers, or of all others."""
    operations = [
        operation
        for result in schemathesis.openapi.from_dict(target.document).get_all_operations()
        if (operation := result.ok()).path.startswith(OF_WORKERS) is (request.param == "of-workers")
    ]
    assert len(operations) > 8
    return [case for operation in operations for case in _generate(operation, number)]


def _generate(operation: APIOperation, number: int) -> list[Case]:
    generated: list[Case] = []

    @settings(GENERATION, max_examples=number)
    @given(
        case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    )
    def collect(case: Case) -> None:
        case.headers.pop("Authorization", None)
        case.cookies.pop("palestra_session", None)
        if operation.path.endswith("/events:poll") and isinstance(case.body, dict):
            _shorten_wait(case.body)
        generated.append(case)

    collect()
    return generated


def _shorten_wait(body: dict[str, Any]) -> None:
    """Sets a valid wait of a long poll to 0; the default is longer than a call may take."""
    wait = body.get("wait", 0)
    if type(wait) in {int, float} and wait >= 0:
        body["wait"] = wait if wait > MAX_POLL_SECONDS else 0


def test_no_generated_request_causes_a_server_error(target: Target, cases: list[Case]) -> None:
    failures = [failure for case in cases if (failure := _send(case, target, target.token))]
    assert not failures, "\n\n".join(failures)


def test_no_generated_request_without_a_token_is_answered(
    target: Target, cases: list[Case]
) -> None:
    failures = [failure for case in cases if (failure := _send(case, target, None))]
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("cases", ["of-workers"], indirect=True, scope="module")
@pytest.mark.parametrize("parameter", ["worker_id", "attempt_id"])
def test_no_generated_request_of_a_worker_causes_a_server_error(
    target: Target, cases: list[Case], parameter: str
) -> None:
    """The paths name the worker or the attempt itself, so that the credential is admitted."""
    name, secret = _claim(target, f"fuzzed-{parameter[:-3]}-{len(cases)}")[parameter]
    failures = [
        failure for case in cases if (failure := _send(case, target, secret, own={parameter: name}))
    ]
    assert not failures, "\n\n".join(failures)


def _send(
    case: Case, target: Target, token: str | None, *, own: Mapping[str, str] | None = None
) -> str:
    """Sends a request and returns what is wrong with the answer, or an empty text."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    generated = case.path_parameters
    case.path_parameters = {name: (own or {}).get(name, value) for name, value in generated.items()}
    try:
        answer = case.call(base_url=target.url, headers=headers, timeout=PATIENCE_SECONDS)
        case.validate_response(answer, checks=CHECKS, headers=headers)
    except FailureGroup as group:
        return f"{case.operation.label}: {group}"
    finally:
        case.path_parameters = generated
    secured = case.operation.definition.raw.get("security") != []
    if token is None and secured and answer.status_code not in REFUSALS:
        return f"{case.operation.label}: {answer.status_code} without a token"
    return ""
