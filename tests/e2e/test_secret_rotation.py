"""A worker process gets a new secret by its heartbeat, keeps it, and goes on training."""

import json

import pytest

from tests.e2e.run_history import make_cartpole_definition, wait_for_success
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def test_a_worker_goes_on_with_a_rotated_secret(stack: Stack) -> None:
    file = stack.directory / "worker" / "worker.json"
    former, pid = _read_secret(stack), stack.processes["worker"].pid
    worker = stack.get_worker()
    asked = stack.post(f"workers/{worker['id']}:rotate-secret")
    assert asked["secret_rotation"] == "pending"
    wait_for(lambda: _read_secret(stack) != former, "the worker keeps its new secret")
    wait_for(
        lambda: stack.get_worker()["secret_rotation"] is None,
        "the worker uses its new secret",
    )
    assert stack.processes["worker"].pid == pid
    assert stack.processes["worker"].poll() is None
    (run,) = stack.submit(make_cartpole_definition(200, name="after the rotation"))
    wait_for_success(stack, run["id"])
    assert file.stat().st_mode & 0o077 == 0


def _read_secret(stack: Stack) -> str:
    return str(json.loads((stack.directory / "worker" / "worker.json").read_text())["secret"])
