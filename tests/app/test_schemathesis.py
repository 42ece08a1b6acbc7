"""Fuzzes a running server by the OpenAPI document that it serves.

No request causes a server error or an undocumented status, with or without a token.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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

from tests.app.test_cli_corpus import REPOSITORY, environment, free_port, start, wait_until_ready

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
REFUSALS = {400, 401, 404, 405, 421, 422}
"""Without a token; all but 401 because the path or the headers already cannot be meant."""
ENDLESS = "/api/v1/events"
"""A stream that does not end by itself; other tests read it."""


@dataclass(frozen=True)
class Target:
    """Address of a running server and a token for it."""

    url: str
    token: str

    @property
    def document(self) -> dict[str, Any]:
        """Returns the OpenAPI document that the server serves."""
        headers = {"Authorization": f"Bearer {self.token}"}
        found: dict[str, Any] = (
            httpx.get(f"{self.url}/api/v1/openapi.json", headers=headers, verify=False, timeout=60)
            .raise_for_status()
            .json()
        )
        found["paths"].pop(ENDLESS, None)
        return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[Target]:
    directory = tmp_path_factory.mktemp("fuzzed")
    shutil.copy(migrated_sqlite, directory / "palestra.db")
    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "app.admin",
            "token",
            "--name",
            "fuzzer",
            "--scopes",
            "read,submit,admin",
        ],
        env=environment(directory),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    port = free_port()
    with (directory / "server.log").open("w") as log:
        server = start(directory, "--port", str(port), stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(server, url)
            yield Target(url, json.loads(made.stdout)["secret"])
        finally:
            server.terminate()
            server.communicate(timeout=30)


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


def _failure(operation: APIOperation, target: Target, *, with_token: bool) -> str:
    try:
        _fuzz(operation, target, with_token=with_token)
    except FailureGroup as group:
        return f"{operation.label}: {group}"
    return ""


def _fuzz(operation: APIOperation, target: Target, *, with_token: bool) -> None:
    headers = {"Authorization": f"Bearer {target.token}"} if with_token else {}
    secured = operation.definition.raw.get("security") != []

    @FUZZ
    @given(
        case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    )
    def send(case: Case) -> None:
        case.headers.pop("Authorization", None)
        case.cookies.pop("palestra_session", None)
        answer = case.call(base_url=target.url, headers=headers, timeout=20)
        case.validate_response(answer, checks=CHECKS, headers=headers)
        assert with_token or not secured or answer.status_code in REFUSALS, (
            f"{answer.status_code} without a token"
        )

    send()
