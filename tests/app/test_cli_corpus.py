"""Rows C of the bad-input corpus: the server's commands in real processes.

Covers two servers on one SQLite file, Ctrl-C and a broken pipe.
"""

import base64
import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.postgres import PostgresServer
from tests.support.process_stack import make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.processes

REPOSITORY = Path(__file__).parents[2]
ROWS = yaml.safe_load((REPOSITORY / "tests/corpus/cli.yaml").read_text("utf-8"))["rows"]
MODULES = {
    "server": "app.main",
    "daemons": "app.daemons",
    "admin": "app.admin",
    "db": "app.db",
    "palestra": "palestra.cli",
}


@pytest.fixture(scope="module")
def busy_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def environment(directory: Path, **more: str) -> dict[str, str]:
    own = {
        "PALESTRA_DATA_DIR": str(directory),
        "PALESTRA_PORT": "0",
        "PYTHONPATH": str(REPOSITORY),
        "XDG_CONFIG_HOME": str(directory),
    }
    return {**make_bare_environment(), **own, **more}


def make_command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", MODULES[arguments[0]], *arguments[1:]]


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command that has ended."""

    exit_code: int
    output: str
    errors: str


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row['id']}-{row['name']}") for row in ROWS]
)
def test_a_row_of_the_corpus_prints_what_it_expects(
    row: dict[str, Any],
    tmp_path: Path,
    busy_port: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"dir": str(tmp_path), "busy": str(busy_port), "pid": str(os.getpid())}
    for name, content in row.get("files", {}).items():
        (tmp_path / name).write_text(content)
    for name, content in row.get("base64_files", {}).items():
        (tmp_path / name).write_bytes(base64.b64decode(content))
    arguments = [argument.format(**names) for argument in row["run"]]
    variables = environment(tmp_path, **row.get("env", {}))
    if arguments[0] == "palestra":
        done = run_process(arguments, variables, tmp_path, row.get("stdin", ""))
    else:
        done = run_here(arguments, variables, monkeypatch, capsys)
    assert done.exit_code == row["exit"], done.errors
    assert row["error"].format(**names) in done.errors.replace("\n", " "), done.errors
    assert "Traceback" not in done.errors
    assert "secret-word" not in done.errors + done.output
    assert len(done.errors.splitlines()) <= 12


def run_process(
    arguments: list[str], variables: dict[str, str], directory: Path, given: str
) -> CommandResult:
    done = subprocess.run(
        make_command(arguments),
        env=variables,
        cwd=directory,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def run_here(
    arguments: list[str],
    variables: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> CommandResult:
    """Runs a command of the server in this process.

    A process for each row would load the server's libraries each time, which takes minutes.
    """
    module = importlib.import_module(
        {"daemons": "app.daemons.__main__", "db": "app.db.__main__"}.get(
            arguments[0], MODULES[arguments[0]]
        )
    )
    monkeypatch.setattr(module, "configure_logging", lambda *_: None, raising=False)
    for name in [name for name in os.environ if name.startswith("PALESTRA_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    try:
        exit_code = module.main(arguments[1:])
    except SystemExit as end:
        exit_code = int(str(end.code))
    captured = capsys.readouterr()
    return CommandResult(exit_code, captured.out, captured.err)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(
    directory: Path, *arguments: str, stderr: Any = subprocess.PIPE, **more: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        make_command(["server", "--no-daemons", *arguments]),
        env=environment(directory, **more),
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
    )


def wait_until_ready(process: subprocess.Popen[str], url: str | None = None) -> None:
    """Waits for the line that the server prints when it is ready.

    If the output is not read, it polls `/readyz` instead.
    """
    if process.stderr is None:
        wait_for(
            lambda: process.poll() is None and _is_answering(f"{url}/readyz"),
            "the server is ready",
        )
        return
    assert any("server.ready" in line for line in process.stderr), "the server ended"


def _is_answering(url: str) -> bool:
    try:
        return httpx.get(url, verify=False).is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def directory(sqlite_file: Path) -> Path:
    return sqlite_file.parent


@pytest.mark.slow
def test_a_second_server_on_one_sqlite_file_names_the_first(directory: Path) -> None:
    """Row C4: the error names the process that has the file open."""
    first = start(directory, "--port", str(free_port()))
    try:
        wait_until_ready(first)
        second = subprocess.run(
            make_command(["server", "--port", str(free_port())]),
            env=environment(directory),
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 1
        assert f"is already open by pid {first.pid}" in second.stderr
    finally:
        first.terminate()
        assert first.wait(PATIENCE_SECONDS) == 0
        first.communicate()
    third = start(directory, "--port", str(free_port()))
    wait_until_ready(third)
    third.terminate()
    third.communicate(timeout=PATIENCE_SECONDS)
    assert third.returncode == 0


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_the_server_with_130(directory: Path, presses: int) -> None:
    """Row C9: one and two presses of Ctrl-C."""
    process = start(directory, "--port", str(free_port()))
    wait_until_ready(process)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_newer_schema_is_refused(directory: Path) -> None:
    """Row C3: the database was written by a newer version."""
    import sqlite3

    with sqlite3.connect(directory / "palestra.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    done = subprocess.run(
        make_command(["server"]),
        env=environment(directory),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "newer schema 9999" in done.stderr
    assert "upgrade Palestra" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_read_only_file_is_refused(directory: Path) -> None:
    """Row C3: the database file is not writable."""
    (directory / "palestra.db").chmod(0o400)
    done = subprocess.run(
        make_command(["server"]),
        env=environment(directory),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "read-only" in done.stderr


def test_the_error_of_a_wrong_password_does_not_contain_it(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Row C3, with and without password authentication on the PostgreSQL server."""
    missing = postgres_server.url("no_such_database") + "&password=secret-word"
    done = subprocess.run(
        make_command(["server", "--database-url", missing]),
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the database cannot be used" in done.stderr
    assert "secret-word" not in done.stderr
