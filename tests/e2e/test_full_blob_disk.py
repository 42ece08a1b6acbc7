"""The disk of the server's blobs is full when a training ends, in real processes.

Server and supervisor are killed while results wait for their upload.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.run_history import get_live_attempt, make_cartpole_definition, wait_for_success
from tests.support.disks import fill, mount_small_disk
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.fixture
def stack_with_full_disk() -> Iterator[tuple[Stack, Path]]:
    """A stack whose blob disk has only a few MiB left, and the file that fills the disk."""
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    try:
        with mount_small_disk(directory / "disk", 16 * 1_024) as disk:
            settings = {
                "PALESTRA_ARTIFACTS_URL": str(disk / "blobs"),
                "PALESTRA_RENEW_SECONDS": "1",
            }
            with Stack(directory, settings=settings) as running:
                yield running, fill(disk)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _is_answering(stack: Stack) -> bool:
    try:
        return httpx.get(f"{stack.url}/healthz", trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _wait_for_pending_upload(stack: Stack, run_id: str) -> dict[str, Any]:
    held = stack.wait_for_run(
        run_id,
        lambda run: run["not_uploaded"] and run["not_uploaded"]["delivering"],
        "it waits for room",
    )
    assert held["state"] == "running"
    found: dict[str, Any] = held["not_uploaded"]
    return found


def test_a_result_is_kept_over_a_full_disk_and_kills_of_server_and_supervisor(
    stack_with_full_disk: tuple[Stack, Path],
) -> None:
    """Regression: the run was `succeeded` although its model was lost."""
    stack, ballast = stack_with_full_disk
    (run,) = stack.submit({**make_cartpole_definition(3_000), "export": {"formats": ["weights"]}})
    held = _wait_for_pending_upload(stack, run["id"])
    assert "artifact store is full" in held["problem"]
    assert held["message"].startswith("result not uploaded yet (")
    assert "result not uploaded yet" in stack.run_palestra("jobs", run["id"])
    assert "artifact store is full" in stack.run_palestra("show", run["id"])
    assert not stack.is_server_ready()
    attempt = get_live_attempt(stack, run["id"])
    assert attempt is not None
    stack.kill("server")
    stack._start("server", [sys.executable, "-m", "app.main"])
    wait_for(lambda: _is_answering(stack), "the server is back, though not ready")
    assert not stack.is_server_ready()
    (supervisor,) = stack.list_module_processes("workers.supervisor", attempt["id"])
    supervisor.kill()
    wait_for(
        lambda: [
            one
            for one in stack.list_module_processes("workers.supervisor", attempt["id"])
            if one.pid != supervisor.pid
        ],
        "adopted",
    )
    time.sleep(2)
    assert stack.get(f"runs/{run['id']}")["state"] == "running"
    ballast.unlink()
    done = wait_for_success(stack, run["id"])
    assert len(done["attempts"]) == 1
    assert done["not_uploaded"] is None
    assert done["snapshots"]["verified"] == done["snapshots"]["written"] == 3_000
    kinds = [
        (one["kind"], one["stored"]) for one in stack.get(f"runs/{run['id']}/artifacts")["items"]
    ]
    assert ("export", True) in kinds
    assert all(stored for _, stored in kinds)
    states = {one["state"] for one in stack.get(f"runs/{run['id']}/snapshots")["items"]}
    assert "uploading" not in states
    assert stack.is_server_ready()


def test_a_user_discards_a_result_that_cannot_be_uploaded(
    stack_with_full_disk: tuple[Stack, Path],
) -> None:
    """The run then ends without a result."""
    stack, _ = stack_with_full_disk
    (run,) = stack.submit(make_cartpole_definition(1_000))
    _wait_for_pending_upload(stack, run["id"])
    stack.run_palestra("give-up", run["id"])
    done = wait_for(
        lambda: (found := stack.get(f"runs/{run['id']}"))["state"] == "failed" and found,
        "it ends without its result",
    )
    assert done["cause"] == "no_result"
    assert "given up by a person" in done["failure"]["message"]
    assert {one["state"] for one in stack.get(f"runs/{run['id']}/snapshots")["items"]} == {
        "skipped"
    }
