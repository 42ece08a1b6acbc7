"""`palestra up` and `palestra demo` as a user meets them: real processes, killed and stopped at every moment, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from palestra.cli.embedded.children import marked, start_ticks
from palestra.cli.embedded.datadir import DataDir, read_json
from palestra.client import Client
from tests.e2e.histories import cartpole
from tests.support.stack import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]


class Up:
    """One `palestra up --json` on a data directory."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.data = DataDir(directory / ".palestra")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")}
        command = [sys.executable, "-m", "palestra.cli", "up", "--json", *(arguments or ("--port", "0"))]
        self.process = subprocess.Popen(
            command, cwd=directory, env=kept, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def ready(self) -> dict[str, Any]:
        """Waits until it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.end()[1]
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self, seconds: float = 60) -> tuple[int, str]:
        """Waits for its end and returns exit code and what it said on the error stream."""
        _, errors = self.process.communicate(timeout=seconds)
        return self.process.returncode, errors

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Sends a signal and waits for the end."""
        self.process.send_signal(number)
        return self.end()

    def pid(self, name: str) -> int:
        """Returns the pid of a child."""
        return int(read_json(self.data.children)[name][0])


@pytest.fixture
def directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    yield made
    for pid in marked(made / ".palestra"):
        psutil.Process(pid).kill()
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def up(directory: Path) -> Iterator[Up]:
    started = Up(directory)
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.communicate()


def nothing_is_left(up: Up) -> bool:
    return marked(up.data.root) == [] and not up.data.children.exists()


def test_it_serves_logs_in_once_and_stops_without_a_trace(up: Up, directory: Path) -> None:
    told = up.ready()
    client = httpx.Client(base_url=told["url"], headers={"Origin": told["url"]})
    code = told["login_url"].partition("#code=")[2]
    assert client.post("/api/v1/session:redeem", json={"code": code}).status_code == 201
    assert client.post("/api/v1/session:redeem", json={"code": code}).status_code == 401
    client.close()
    secrets = [path.read_text().strip() for path in (up.data.user_token, up.data.worker_token)]
    secrets.append(up.data.read_state()["broker_password"])
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    logs = "".join(path.read_text(errors="replace") for path in (up.data.root / "logs").iterdir())
    assert not [secret for secret in secrets if secret in commands or secret in logs]
    assert {path.stat().st_mode & 0o077 for path in (up.data.root, up.data.user_token, up.data.worker_token, up.data.state)} == {0}
    assert up.stop() == (130, "")
    assert nothing_is_left(up)


def test_a_second_instance_says_who_has_the_directory(up: Up, directory: Path) -> None:
    told = up.ready()
    second = Up(directory)
    code, errors = second.end()
    assert (code, f"pid {told['pid']}" in errors, told["url"] in errors) == (1, True, True)
    assert up.stop(signal.SIGTERM)[0] == 0


def test_a_port_in_use_is_named_with_its_owner(directory: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = Up(directory, "--port", str(port))
        code, errors = up.end()
    assert (code, f"port {port} is used by pid {os.getpid()}" in errors) == (2, True)
    assert nothing_is_left(up)


@pytest.mark.parametrize("name", ["valkey", "server", "worker"])
def test_what_dies_is_started_again(up: Up, name: str) -> None:
    told = up.ready()
    before = up.pid(name)
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: up.pid(name) != before and start_ticks(up.pid(name)), 60, f"{name} lives again")
    with Client(told["url"], up.data.user_token.read_text().strip()) as client:
        wait_for(lambda: _online(client), 90, "server and worker are back")
    code, errors = up.stop()
    assert (code, f"{name} was killed by SIGKILL; starting it again" in errors) == (130, True)
    assert nothing_is_left(up)


def _online(client: Client) -> bool:
    from palestra.errors import PalestraError

    try:
        return any(worker.state == "online" for worker in client.workers())
    except PalestraError:
        return False


def test_ctrl_c_during_the_imports_leaves_nothing(up: Up) -> None:
    maps = Path(f"/proc/{up.process.pid}/maps")
    wait_for(lambda: "pydantic_core" in maps.read_text(), 30, "the command imports its parts")
    code, errors = up.stop()
    assert code == 130
    assert "Traceback" not in errors
    assert marked(up.data.root) == []


@pytest.mark.parametrize("seconds", [1.5, 3.0, 5.0])
def test_ctrl_c_during_the_start_leaves_nothing(up: Up, seconds: float) -> None:
    time.sleep(seconds)
    code, errors = up.stop()
    assert code == 130
    assert "Traceback" not in errors
    assert marked(up.data.root) == []


def test_a_second_ctrl_c_makes_an_end_at_once(up: Up) -> None:
    up.ready()
    up.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    up.process.send_signal(signal.SIGINT)
    assert up.end(20)[0] == 130
    assert marked(up.data.root) == []


def test_a_killed_instance_takes_its_processes_along_and_the_next_one_has_its_data(up: Up, directory: Path) -> None:
    from palestra.contract.definition import Definition
    from palestra.contract.documents import canonical_json

    told = up.ready()
    with Client(told["url"], up.data.user_token.read_text().strip()) as client:
        experiment = client.submit(Definition.model_validate_json(canonical_json(cartpole(200))))
    up.process.kill()
    up.process.communicate()
    wait_for(lambda: not [pid for pid in marked(up.data.root) if "workers.celery_app" in _arguments(pid)], 60, "the worker ends")
    second = Up(directory)
    again = second.ready()
    assert again["url"] == told["url"]
    with Client(again["url"], second.data.user_token.read_text().strip()) as client:
        assert client.experiment(experiment.id).id == experiment.id
        wait_for(lambda: all(run.state == "succeeded" for run in client.runs(experiment.id)), 90, "the job that was queued ends")
    assert second.stop()[0] == 130
    assert nothing_is_left(second)


def _arguments(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.NoSuchProcess:
        return []


def test_a_running_training_is_saved_by_ctrl_c_and_goes_on_at_the_next_start(up: Up, directory: Path) -> None:
    from palestra.contract.definition import Definition
    from palestra.contract.documents import canonical_json

    told = up.ready()
    with Client(told["url"], up.data.user_token.read_text().strip()) as client:
        experiment = client.submit(Definition.model_validate_json(canonical_json(cartpole(9_000))))
        (run,) = client.runs(experiment.id)
        wait_for(lambda: client.run(run.id).progress.env_step > 500, 60, "the run trains")
    assert up.stop()[0] == 130
    assert nothing_is_left(up)
    second = Up(directory)
    again = second.ready()
    with Client(again["url"], second.data.user_token.read_text().strip()) as client:
        wait_for(lambda: client.run(run.id).state == "succeeded", 120, "the run ends")
        done = client.run(run.id)
    assert (done.resume_quality, done.progress.env_step, len(done.attempts)) == ("exact", 9_000, 2)
    assert second.stop()[0] == 130
    assert nothing_is_left(second)


def test_the_demo_trains_evaluates_and_stops(directory: Path) -> None:
    definition = directory / "quick.yaml"
    quick = cartpole(1_200, evaluation={"every_env_steps": 400, "episodes": 2}, stop={"success_score": 1})
    definition.write_text(json.dumps({"definition": quick}))
    command = [sys.executable, "-m", "palestra.cli", "demo", "--file", "quick.yaml", "--port", "0", "--seeds", "0-1"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")}
    for known in (False, True):
        done = subprocess.run(command, cwd=directory, env=kept, capture_output=True, text=True, check=False, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("was here before" in done.stdout) is known
        assert "Experiment  fault-test-" in done.stdout
        assert "/experiments/fault-test-" in done.stdout
        assert str(directory / ".palestra") in done.stdout
        assert done.stdout.count(" ok\n") == 2
        assert marked(directory / ".palestra") == []


def test_a_demo_below_the_score_is_a_failure(directory: Path) -> None:
    hard = cartpole(600, evaluation={"every_env_steps": 400, "episodes": 2}, stop={"success_score": 499})
    (directory / "hard.yaml").write_text(json.dumps({"definition": hard}))
    command = [sys.executable, "-m", "palestra.cli", "demo", "--file", "hard.yaml", "--port", "0", "--seeds", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALESTRA_")}
    done = subprocess.run(command, cwd=directory, env=kept, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, "below the score" in done.stdout) == (1, True)
    assert marked(directory / ".palestra") == []
