"""Ctrl-C and broken pipes in real processes: conventional exit codes and no traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import api_samples
from tests.support.api_samples import RUN
from tests.support.fake_http_server import (
    Answer,
    FakeHttpServer,
    RecordedRequest,
    run_fake_server,
)
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture
def peer() -> Iterator[FakeHttpServer]:
    with run_fake_server() as running:
        yield running


def start(peer: FakeHttpServer, tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PALESTRA_SERVER": peer.url,
        "PALESTRA_TOKEN": "plr_test",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    command = [sys.executable, "-m", "palestra.cli", *arguments]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_exits_with_130(peer: FakeHttpServer, tmp_path: Path, presses: int) -> None:
    peer.set_answers("GET", "/runs", Answer(200, api_samples.make_page(api_samples.make_run())))
    process = start(peer, tmp_path, "watch", "exp")
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (130, "")


def test_a_broken_pipe_exits_with_141(peer: FakeHttpServer, tmp_path: Path) -> None:
    def answer_with_more_lines(asked: RecordedRequest) -> Answer:
        first = int(asked.query["after"]) + 1
        lines = [
            {"n": n, "attempt_id": "a", "stream": "stdout", "wall": 1.0, "text": "x" * 200}
            for n in range(first, first + 500)
        ]
        return Answer(
            200, {"run_id": RUN, "lines": lines, "next_after": first + 499, "complete": False}
        )

    peer.set_answers("GET", f"/runs/{RUN}/log", answer_with_more_lines)
    process = start(peer, tmp_path, "logs", RUN)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
    assert (process.returncode, errors) == (141, "")


def test_a_pipe_that_breaks_under_json_exits_with_141(peer: FakeHttpServer, tmp_path: Path) -> None:
    peer.set_answers(
        "GET",
        "/runs",
        Answer(
            200,
            api_samples.make_page(
                *(api_samples.make_run(id=api_samples.make_id("run", n)) for n in range(300))
            ),
        ),
    )
    process = start(peer, tmp_path, "runs", "--json", "--limit", "300")
    with process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
    assert (process.returncode, errors) == (141, "")


def test_a_command_whose_packages_are_missing_names_the_extra(tmp_path: Path) -> None:
    program = (
        "import importlib.util, sys; real = importlib.util.find_spec;"
        "importlib.util.find_spec = lambda name, *a: None if name == 'celery' else real(name, *a);"
        "from palestra.cli.main import main; sys.exit(main(['worker']))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "palestra: celery not installed: pip install 'palestra[worker]'\n",
    )


def test_the_command_imports_no_large_library() -> None:
    program = (
        "import sys; import palestra.cli.main;"
        "sys.exit(', '.join({'fastapi', 'sqlalchemy', 'celery', 'torch', 'numpy'} & "
        "set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
