"""`palestra up` in real processes.

It is killed and stopped at various moments, and leaves no process behind.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from palestra.cli.embedded.child_processes import find_marked
from palestra.client import Client
from palestra.processes import read_stat
from tests.e2e.palestra_up import UpProcess, has_ended_cleanly
from tests.support.waiting import wait_for


def _is_running(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.is_running


pytestmark = pytest.mark.processes


def test_up_serves_prints_a_login_link_and_leaves_no_process(
    up_process: UpProcess, directory: Path
) -> None:
    told = up_process.wait_until_ready()
    client = httpx.Client(base_url=told["url"], headers={"Origin": told["url"]}, verify=False)
    code = told["login_url"].partition("#code=")[2]
    assert client.post("/api/v1/session:redeem", json={"code": code}).status_code == 201
    assert client.post("/api/v1/session:redeem", json={"code": code}).status_code == 401
    client.close()
    secrets = [
        path.read_text().strip()
        for path in (up_process.data.user_token, up_process.data.worker_token)
    ]
    secrets += [
        up_process.data.read_state()[f"{user}_broker_password"] for user in ("server", "worker")
    ]
    commands = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    logs = "".join(
        path.read_text(errors="replace") for path in (up_process.data.root / "logs").iterdir()
    )
    assert not [secret for secret in secrets if secret in commands or secret in logs]
    assert {
        path.stat().st_mode & 0o077
        for path in (
            up_process.data.root,
            up_process.data.user_token,
            up_process.data.worker_token,
            up_process.data.state,
        )
    } == {0}
    assert up_process.stop() == (130, "")
    assert has_ended_cleanly(up_process)


def test_a_second_instance_names_the_process_that_uses_the_directory(
    up_process: UpProcess, directory: Path
) -> None:
    told = up_process.wait_until_ready()
    second = UpProcess(directory)
    code, errors = second.end()
    assert (code, f"pid {told['pid']}" in errors, told["url"] in errors) == (1, True, True)
    assert up_process.stop(signal.SIGTERM)[0] == 0


def test_the_error_of_a_port_in_use_names_the_process(directory: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = UpProcess(directory, "--port", str(port))
        code, errors = up.end()
    assert (code, f"port {port} is used by pid {os.getpid()}" in errors) == (2, True)
    assert has_ended_cleanly(up)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("valkey", marks=pytest.mark.slow),
        pytest.param("server", marks=pytest.mark.slow),
        "worker",
    ],
)
def test_a_killed_child_is_started_again(up_process: UpProcess, name: str) -> None:
    told = up_process.wait_until_ready()
    before = up_process.get_pid(name)
    os.kill(before, signal.SIGKILL)
    wait_for(
        lambda: up_process.get_pid(name) != before and _is_running(up_process.get_pid(name)),
        f"{name} lives again",
    )
    with Client(told["url"], up_process.data.user_token.read_text().strip()) as client:
        wait_for(lambda: _is_worker_online(client), "server and worker are back")
    code, errors = up_process.stop()
    assert (code, f"{name} was killed by SIGKILL; starting it again" in errors) == (130, True)
    assert has_ended_cleanly(up_process)


def _is_worker_online(client: Client) -> bool:
    from palestra.errors import PalestraError

    try:
        return any(worker.state == "online" for worker in client.workers())
    except PalestraError:
        return False


def test_ctrl_c_during_the_imports_leaves_no_process(up_process: UpProcess) -> None:
    maps = Path(f"/proc/{up_process.process.pid}/maps")
    wait_for(lambda: "pydantic_core" in maps.read_text(), "the command imports its parts")
    code, errors = up_process.stop()
    assert code in {130, -signal.SIGINT}, (
        "a shell shows both as 130; Python may take either while it imports an extension"
    )
    assert "Traceback" not in errors
    assert find_marked(up_process.data.root) == []


@pytest.mark.parametrize("seconds", [0.0, 1.5, 3.0])
def test_ctrl_c_during_the_start_leaves_no_process(up_process: UpProcess, seconds: float) -> None:
    wait_for(up_process.data.state.exists, "it begins to start")
    time.sleep(seconds)
    code, errors = up_process.stop()
    assert code == 130
    assert "Traceback" not in errors
    assert find_marked(up_process.data.root) == []


def test_a_second_ctrl_c_ends_without_waiting(up_process: UpProcess) -> None:
    up_process.wait_until_ready()
    up_process.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    up_process.process.send_signal(signal.SIGINT)
    assert up_process.end(20)[0] == 130
    assert find_marked(up_process.data.root) == []
