"""Rows C of the bad-input corpus: commands of users and of the server, two servers, Ctrl-C."""

import base64
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import app.admin
import app.daemons.__main__
import app.db.__main__
import app.main
import palestra.cli.main
from tests.support.commands import CommandResult, run_command
from tests.support.postgres import PostgresServer
from tests.support.process_stack import find_free_port, make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[2]
ROWS = yaml.safe_load((REPOSITORY / "tests/corpus/cli.yaml").read_text("utf-8"))["rows"]
PROGRAMS = {
    "server": app.main.main,
    "daemons": app.daemons.__main__.main,
    "admin": app.admin.main,
    "db": app.db.__main__.main,
    "palestra": palestra.cli.main.main,
}
Run = Callable[..., CommandResult]


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


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row['id']}-{row['name']}") for row in ROWS]
)
def test_a_row_of_the_corpus_prints_what_it_expects(
    row: dict[str, Any], tmp_path: Path, busy_port: int, run: Run
) -> None:
    names = {"dir": str(tmp_path), "busy": str(busy_port), "pid": str(os.getpid())}
    for name, content in row.get("files", {}).items():
        (tmp_path / name).write_text(content)
    for name, content in row.get("base64_files", {}).items():
        (tmp_path / name).write_bytes(base64.b64decode(content))
    arguments = [argument.format(**names) for argument in row["run"]]
    done = run(tmp_path, arguments, row.get("stdin", ""), **row.get("env", {}))
    assert done.exit_code == row["exit"], done.errors
    assert row["error"].format(**names) in done.errors.replace("\n", " "), done.errors
    assert "Traceback" not in done.errors
    assert "secret-word" not in done.errors + done.output
    assert len(done.errors.splitlines()) <= 12


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process."""
    for module in (app.main, app.daemons.__main__):
        monkeypatch.setattr(module, "configure_logging", lambda *_: None)

    def run_in(
        directory: Path, arguments: list[str], given: str = "", **more: str
    ) -> CommandResult:
        variables = environment(directory, **more)
        program = PROGRAMS[arguments[0]]
        return run_command(arguments[1:], variables, tmp_path, given, program=program)

    return run_in


def start(directory: Path) -> subprocess.Popen[str]:
    """Starts a server by the command of a user, which turns into the server."""
    command = ["palestra.cli", "server", "--no-daemons", "--port", str(find_free_port())]
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        env=environment(directory),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Waits for the line that the server prints when it is ready."""
    assert process.stderr is not None
    assert any("server.ready" in line for line in process.stderr), "the server ended"


@pytest.fixture
def directory(sqlite_file: Path) -> Path:
    return sqlite_file.parent


@pytest.mark.slow
@pytest.mark.processes
def test_a_second_server_on_one_sqlite_file_names_the_first(directory: Path, run: Run) -> None:
    """Row C4: the error names the process that has the file open."""
    first = start(directory)
    try:
        wait_until_ready(first)
        second = run(directory, ["server", "--port", str(find_free_port())])
        assert second.exit_code == 1
        assert f"is already open by pid {first.pid}" in second.errors
    finally:
        first.terminate()
        assert first.wait(PATIENCE_SECONDS) == 0
        first.communicate()
    third = start(directory)
    wait_until_ready(third)
    third.terminate()
    third.communicate(timeout=PATIENCE_SECONDS)
    assert third.returncode == 0


@pytest.mark.processes
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_the_server_with_130(directory: Path, presses: int) -> None:
    """Row C9: one and two presses of Ctrl-C."""
    process = start(directory)
    wait_until_ready(process)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_newer_schema_is_refused(directory: Path, run: Run) -> None:
    """Row C3: the database was written by a newer version."""
    with sqlite3.connect(directory / "palestra.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    done = run(directory, ["server"])
    assert done.exit_code == 1
    assert "newer schema 9999" in done.errors
    assert "upgrade Palestra" in done.errors


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_read_only_file_is_refused(directory: Path, run: Run) -> None:
    """Row C3: the database file is not writable."""
    (directory / "palestra.db").chmod(0o400)
    done = run(directory, ["server"])
    assert done.exit_code == 1
    assert "read-only" in done.errors


def test_the_error_of_a_wrong_password_does_not_contain_it(
    postgres_server: PostgresServer, tmp_path: Path, run: Run
) -> None:
    """Row C3, with and without password authentication on the PostgreSQL server."""
    missing = postgres_server.url("no_such_database") + "&password=secret-word"
    done = run(tmp_path, ["server", "--database-url", missing])
    assert done.exit_code == 1
    assert "the database no_such_database cannot be used" in done.errors
    assert "secret-word" not in done.errors
