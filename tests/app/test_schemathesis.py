"""A fuzzer against a running server and the document it serves: no server error, no undocumented status, with and without a token."""

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
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from tests.app.test_cli_corpus import REPOSITORY, environment, free_port, start, wait_until_ready

pytestmark = pytest.mark.processes

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
EXAMPLES = int(os.environ.get("PALESTRA_TEST_FUZZ_EXAMPLES", "12"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
ENDLESS = "/api/v1/events"
"""A stream that ends with its reader; its own tests read it."""


@dataclass(frozen=True)
class Target:
    """A running server and a token for it."""

    url: str
    token: str

    @property
    def document(self) -> dict[str, Any]:
        """The document that the server serves."""
        headers = {"Authorization": f"Bearer {self.token}"}
        found: dict[str, Any] = httpx.get(f"{self.url}/api/v1/openapi.json", headers=headers).raise_for_status().json()
        found["paths"].pop(ENDLESS, None)
        return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[Target]:
    directory = tmp_path_factory.mktemp("fuzzed")
    shutil.copy(migrated_sqlite, directory / "palestra.db")
    made = subprocess.run(
        [sys.executable, "-m", "app.admin", "token", "--name", "fuzzer", "--scopes", "read,submit,admin,worker"],
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


@pytest.fixture(scope="module")
def served_schema(target: Target) -> Any:
    return schemathesis.openapi.from_dict(target.document)


schema = schemathesis.pytest.from_fixture("served_schema")


@schema.parametrize()
@FUZZ
def test_no_request_with_a_token_breaks_the_server(case: Any, target: Target) -> None:
    case.call_and_validate(base_url=target.url, headers={"Authorization": f"Bearer {target.token}"}, checks=CHECKS, timeout=20)


@schema.parametrize()
@FUZZ
def test_no_request_without_a_token_breaks_the_server_or_gets_in(case: Any, target: Target) -> None:
    answer = case.call(base_url=target.url, timeout=20)
    case.validate_response(answer, checks=CHECKS)
    secured = case.operation.definition.raw.get("security") != []
    assert not secured or answer.status_code in {400, 401, 404, 405, 421, 422}
