"""`palestra logs` and lines that are not complete, such as progress bars."""

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

from tests.support import api_samples
from tests.support.commands import RunCommand
from tests.support.fake_http_server import Answer, FakeHttpServer
from workers.supervisor.output_lines import OutputLines

RUN = "run_" + "0" * 26


def make_log(first: int, *texts: str, open_texts: tuple[str, ...] = ()) -> dict[str, Any]:
    line = {"attempt_id": "att", "stream": "stdout", "wall": 1.0}
    return {
        "run_id": RUN,
        "lines": [{**line, "n": first + n, "text": text} for n, text in enumerate(texts)],
        "next_after": first + len(texts) - 1,
        "complete": True,
        "open_lines": [{**line, "text": text} for text in open_texts],
    }


PAGES = [
    make_log(1, "begin", open_texts=("outer 0", "10%")),
    make_log(2, open_texts=("outer 0", "20% " + "x" * 300)),
    make_log(2, "epoch 1", open_texts=("outer 1", "30% \x1b[31m")),
    make_log(3, "outer 1", "100%"),
]


@pytest.fixture
def run_with_bars(peer: FakeHttpServer) -> FakeHttpServer:
    """A server with a run whose log has progress bars until the run ends."""
    peer.set_answers("GET", f"/runs/{RUN}/log", *(Answer(200, page) for page in PAGES))
    states = ["running"] * (len(PAGES) - 2) + ["succeeded"]
    details = [Answer(200, api_samples.make_run_detail(state=state)) for state in states]
    peer.set_answers("GET", f"/runs/{RUN}", *details)
    return peer


def show_at_a_terminal(*arguments: str) -> str:
    """Runs `palestra logs` at a terminal and returns what it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "palestra.cli", "logs", RUN, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        start_new_session=True,
    )
    os.close(theirs)
    written = b""
    try:
        while data := os.read(ours, 1_024):
            written += data
    except OSError:
        pass  # The other side is closed.
    finally:
        os.close(ours)
    assert process.wait() == 0, written
    return written.decode()


def list_shown_lines(written: str) -> list[str]:
    """Returns the lines that a terminal of ten rows shows at the end, without blank ones."""
    terminal = OutputLines()
    lines = [*terminal.feed(b"\x1b[9A" + written.encode()), *terminal.finish()]
    return [line.strip() for line in lines if line.strip()]


def test_elsewhere_than_at_a_terminal_only_complete_lines_are_printed(
    run_with_bars: FakeHttpServer, palestra: RunCommand
) -> None:
    code, out, _ = palestra("logs", RUN, "--follow")
    assert (code, out) == (0, "begin\nepoch 1\nouter 1\n100%\n")


def test_only_complete_lines_are_printed_as_json(
    run_with_bars: FakeHttpServer, palestra: RunCommand
) -> None:
    _, out, _ = palestra("logs", RUN, "--json")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["begin"]


@pytest.mark.processes
def test_a_terminal_shows_the_newest_text_of_open_lines(run_with_bars: FakeHttpServer) -> None:
    written = show_at_a_terminal("--follow")
    assert written.index("10%") < written.index("20%") < written.index("30% \ufffd[31m")
    assert "x" * 81 not in written, "a row has the width of the terminal"
    assert list_shown_lines(written) == ["begin", "epoch 1", "outer 1", "100%"]


@pytest.mark.processes
def test_without_follow_a_terminal_shows_the_open_lines_at_the_end(
    run_with_bars: FakeHttpServer,
) -> None:
    assert list_shown_lines(show_at_a_terminal()) == ["begin", "outer 0", "10%"]
