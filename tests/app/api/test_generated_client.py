"""A client that openapi-python-client generates from the OpenAPI document, against a server.

The generator has an environment of its own, which `make .setup/openapi-client/made` makes.
"""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.services.access import logins
from tests.app.api.serving import AppServer
from tests.support.documented_statuses import DOCUMENT, read_paths
from tests.support.documents import REPOSITORY
from tests.support.listening import listening
from tests.support.server_fixture import make_definition
from tests.support.waiting import PATIENCE_SECONDS

BIN = REPOSITORY / ".setup" / "openapi-client" / "bin"
CALLS = Path(__file__).with_name("generated_client_calls.py")
PASSWORD = "four unrelated owls sing"

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.extended,
    pytest.mark.skipif(not BIN.exists(), reason="needs make .setup/openapi-client/made"),
]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the package `generated`; a warning of the generator is an error."""
    directory = tmp_path_factory.mktemp("client")
    options = {
        "--path": DOCUMENT,
        "--config": REPOSITORY / "docs" / "openapi-python-client.yaml",
        "--output-path": directory / "generated",
        "--meta": "none",
    }
    arguments = [str(part) for option in options.items() for part in option]
    done = subprocess.run(
        [BIN / "openapi-python-client", "generate", "--fail-on-warning", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


async def test_a_client_has_every_operation(generated: Path) -> None:
    operations = {
        operation["operationId"]
        for methods in read_paths().values()
        for operation in methods.values()
    }
    modules = {path.stem for path in (generated / "generated" / "api").glob("*/[!_]*.py")}
    assert modules == operations


async def test_a_client_logs_in_submits_and_lists_runs(shared: AppServer, generated: Path) -> None:
    async with shared.database.write() as session:
        code = await logins.make_link(session, shared.world.admin.user_id, 3_600)
    definition = make_definition(name="by a generated client", loop={"env_steps": 12_345})
    async with listening(shared.app) as url:
        done = await asyncio.to_thread(
            _call, generated, url, code, PASSWORD, json.dumps(definition)
        )
    async with shared.client("user") as client:
        runs = await client.get("/api/v1/runs", params={"experiment": done["experiment"]})
        stored = (await client.get(f"/api/v1/experiments/{done['experiment']}")).json()
    expected = sorted((run["seed"], run["id"]) for run in runs.json()["items"])
    assert [seed for seed, _ in expected] == [3, 4]
    assert done == {
        "user": shared.world.admin.user,
        "refusal": "wrong_login",
        "missing": "not_found",
        "experiment": stored["id"],
        "previewed": [stored["id"], [3, 4]],
        "definition": stored["definition"],
        "runs": [[run_id, seed, stored["id"]] for seed, run_id in expected],
        "run": expected[0][1],
    }


def _call(directory: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [BIN / "python", CALLS, *arguments],
        env={"PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
