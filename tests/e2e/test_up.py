"""`palestra up` in real processes.

It is killed and stopped at various moments, and leaves no process behind.
"""

import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from palestra.cli.embedded.child_processes import find_marked
from palestra.client import Client
from palestra.errors import PalestraError
from palestra.processes import read_stat
from tests.e2e.palestra_up import UpProcess, has_ended_cleanly
from tests.e2e.run_history import suspend
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def test_up_serves_refuses_a_second_instance_restarts_its_worker_and_leaves_no_process(
    up_process: UpProcess, directory: Path
) -> None:
    started = up_process.wait_until_ready()
    _check_login_link(started)
    _check_secrets(up_process)
    code, errors = UpProcess(directory).end()
    assert (code, f"pid {started['pid']}" in errors, started["url"] in errors) == (1, True, True)
    _kill_child(up_process, started, "worker")
    code, errors = up_process.stop()
    assert (code, errors.splitlines()) == (130, [_tell_restart(up_process, "worker")])
    assert _has_valkey_stopped(up_process)
    assert has_ended_cleanly(up_process)


def _check_login_link(started: dict[str, Any]) -> None:
    """Checks that the printed link logs a browser in, once."""
    origin = {"Origin": started["url"]}
    with httpx.Client(base_url=started["url"], headers=origin, trust_env=False) as client:
        code = {"code": started["login_url"].partition("#code=")[2]}
        assert client.post("/api/v1/session:redeem", json=code).status_code == 201
        assert client.post("/api/v1/session:redeem", json=code).status_code == 401


def _check_secrets(up: UpProcess) -> None:
    """Checks that secrets are in private files alone."""
    state = up.data.read_state()
    secrets = [file.read_text().strip() for file in (up.data.user_token, up.data.worker_token)]
    secrets.append(state["server_broker_password"])
    commands = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    files = (up.data.root / "logs").iterdir()
    logs = "".join(file.read_text(errors="replace") for file in files)
    assert not [secret for secret in secrets if secret in commands or secret in logs]
    private = (up.data.root, up.data.user_token, up.data.worker_token, up.data.state)
    assert {file.stat().st_mode & 0o077 for file in private} == {0}


def _kill_child(up: UpProcess, started: dict[str, Any], name: str) -> None:
    """Kills a child and waits until it runs again."""
    before = up.get_pid(name)
    os.kill(before, signal.SIGKILL)
    wait_for(
        lambda: up.get_pid(name) != before and _is_running(up.get_pid(name)), f"{name} lives again"
    )
    with Client(started["url"], up.data.user_token.read_text().strip()) as client:
        wait_for(lambda: _is_worker_online(client), "server and worker are back")


def _tell_restart(up: UpProcess, name: str) -> str:
    return f"{name} was killed by SIGKILL; starting it again (see {up.data.log(name)})"


def _is_running(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.is_running


def _is_worker_online(client: Client) -> bool:
    try:
        return any(worker.state == "online" for worker in client.workers())
    except PalestraError:
        return False


def _has_valkey_stopped(up: UpProcess) -> bool:
    """Returns whether Valkey was asked to stop, which comes last, and not killed."""
    return "SIGTERM" in up.data.log("valkey").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["valkey", "server"])
def test_a_killed_child_is_started_again(up_process: UpProcess, name: str) -> None:
    started = up_process.wait_until_ready()
    _kill_child(up_process, started, name)
    code, errors = up_process.stop()
    assert (code, _tell_restart(up_process, name) in errors) == (130, True)
    assert has_ended_cleanly(up_process)


def test_the_error_of_a_port_in_use_names_the_process(directory: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = UpProcess(directory, "--port", str(port))
        code, errors = up.end()
    assert (code, f"port {port} is used by pid {os.getpid()}" in errors) == (2, True)
    assert has_ended_cleanly(up)


def test_ctrl_c_during_the_imports_leaves_no_process(up_process: UpProcess) -> None:
    maps = Path(f"/proc/{up_process.process.pid}/maps")
    wait_for(lambda: "pydantic_core" in maps.read_text(), "the command imports its parts")
    code, errors = up_process.stop()
    assert code in {130, -signal.SIGINT}, (
        "a shell shows both as 130; Python may take either while it imports an extension"
    )
    assert "Traceback" not in errors
    assert find_marked(up_process.data.root) == []


@pytest.mark.parametrize(
    ("child", "number", "expected"),
    [("valkey", signal.SIGINT, 130), ("server", signal.SIGINT, 130), ("worker", signal.SIGTERM, 0)],
)
def test_a_signal_during_the_start_leaves_no_process(
    up_process: UpProcess, child: str, number: signal.Signals, expected: int
) -> None:
    """The signal comes when the last child that was started is the given one."""
    wait_for(lambda: child in up_process.read_children(), f"{child} is started")
    code, errors = up_process.stop(number)
    assert code == expected
    assert "Traceback" not in errors
    assert find_marked(up_process.data.root) == []


def test_a_second_ctrl_c_ends_without_waiting(up_process: UpProcess) -> None:
    up_process.wait_until_ready()
    worker = psutil.Process(up_process.get_pid("worker"))
    suspend(worker)
    up_process.process.send_signal(signal.SIGINT)
    wait_for(lambda: _has_pending_sigterm(worker.pid), "the command waits for its worker")
    assert up_process.stop()[0] == 130
    assert not _has_valkey_stopped(up_process), "no child was given time to stop"
    assert find_marked(up_process.data.root) == []


def _has_pending_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
