"""The disk of the server's blobs is full when a training ends, in real processes.

Server and supervisor are killed while results wait for their upload.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import QUICK, make_short_directory
from tests.e2e.run_history import get_live_attempt, make_cartpole_definition, wait_for_success
from tests.support.disks import fill, mount_small_disk
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def stack_with_small_disk(migrated_sqlite: Path) -> Iterator[tuple[Stack, Path]]:
    """A stack whose blobs are on a small disk, and the directory of the disk."""
    with (
        make_short_directory() as directory,
        mount_small_disk(directory / "disk", 16 * 1_024) as disk,
    ):
        settings = {**QUICK, "PALESTRA_ARTIFACTS_URL": str(disk / "blobs")}
        with Stack(directory, settings=settings, template=migrated_sqlite) as stack:
            yield stack, disk


@pytest.fixture
def stack_with_full_disk(
    stack_with_small_disk: tuple[Stack, Path],
) -> Iterator[tuple[Stack, Path]]:
    """A stack whose blob disk has only a few MiB left, and the file that fills the disk."""
    stack, disk = stack_with_small_disk
    ballast = fill(disk)
    yield stack, ballast
    ballast.unlink(missing_ok=True)
    wait_for(stack.is_server_ready, "the server is ready again")


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
    return dict(held["not_uploaded"])


def _count_delayed_releases(stack: Stack, attempt_id: str) -> int:
    log = stack.attempt_directory(attempt_id) / "supervisor.log"
    return log.read_text().count("release.delayed")


def test_a_result_is_kept_over_a_full_disk_and_kills_of_server_and_supervisor(
    stack_with_full_disk: tuple[Stack, Path],
) -> None:
    """Regression: the run was `succeeded` although its model was lost."""
    stack, ballast = stack_with_full_disk
    (run,) = stack.submit({**make_cartpole_definition(1_000), "export": {"formats": ["weights"]}})
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
    delayed = _count_delayed_releases(stack, attempt["id"])
    wait_for(
        lambda: _count_delayed_releases(stack, attempt["id"]) > delayed,
        "another supervisor tries to upload the result",
    )
    assert stack.get(f"runs/{run['id']}")["state"] == "running"
    ballast.unlink()
    done = wait_for_success(stack, run["id"])
    assert len(done["attempts"]) == 1
    assert done["not_uploaded"] is None
    assert done["snapshots"]["verified"] == done["snapshots"]["written"] == 1_000
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
    (run,) = stack.submit(make_cartpole_definition(1_001))
    _wait_for_pending_upload(stack, run["id"])
    stack.run_palestra("give-up", run["id"])
    wait_for(
        lambda: stack.get(f"runs/{run['id']}")["state"] == "failed", "it ends without its result"
    )
    done = stack.get(f"runs/{run['id']}")
    assert done["cause"] == "no_result"
    assert "given up by a person" in done["failure"]["message"]
    assert {one["state"] for one in stack.get(f"runs/{run['id']}/snapshots")["items"]} == {
        "skipped"
    }
