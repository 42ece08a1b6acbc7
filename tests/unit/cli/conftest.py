"""Runs commands in this process against a real HTTP server with scripted answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palestra.cli.main import main
from tests.support.commands import DOCUMENT, RunCommand
from tests.support.fake_http_server import FakeHttpServer, run_fake_server


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHttpServer]:
    with run_fake_server() as running:
        monkeypatch.setenv("PALESTRA_SERVER", running.url)
        monkeypatch.setenv("PALESTRA_TOKEN", "plr_test")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "x.yaml").write_text(DOCUMENT)
        yield running


@pytest.fixture
def palestra(peer: FakeHttpServer, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
