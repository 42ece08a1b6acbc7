"""A worker process gets a new secret by its heartbeat, keeps it, and goes on training."""

import json
from pathlib import Path

import pytest

from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


def _read_secret(stack: Stack) -> str:
    return str(json.loads((stack.directory / "worker" / "worker.json").read_text())["secret"])


def test_a_worker_goes_on_with_a_rotated_secret(tmp_path: Path) -> None:
    with Stack(tmp_path / "data") as stack:
        former, pid = _read_secret(stack), stack.processes["worker"].pid
        (worker,) = stack.get("workers")["items"]
        asked = stack.post(f"workers/{worker['id']}:rotate-secret")
        assert asked["secret_rotation"] == "pending"
        wait_for(lambda: _read_secret(stack) != former, "the worker keeps its new secret")
        wait_for(
            lambda: stack.get("workers")["items"][0]["secret_rotation"] is None,
            "the worker uses its new secret",
        )
        assert stack.processes["worker"].pid == pid
        assert stack.processes["worker"].poll() is None
        definition = {
            "kind": "rl",
            "name": "after the rotation",
            "env": {"id": "CartPole-v1"},
            "agent": {"name": "dqn"},
            "loop": {"env_steps": 200},
        }
        (run,) = stack.submit(definition, seeds=[1])
        wait_for(
            lambda: stack.get(f"runs/{run['id']}")["state"] == "succeeded",
            "the worker claims and trains with its new secret",
        )
        assert (stack.directory / "worker" / "worker.json").stat().st_mode & 0o077 == 0
