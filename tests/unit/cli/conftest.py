"""Commands in this process, against a real HTTP server that answers as it is told."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palestra.cli.main import main
from tests.support import api_samples
from tests.support.fake_http_server import Peer, running_peer

Run = Callable[..., tuple[int, str, str]]
DOCUMENT = json.dumps({"definition": api_samples.definition(), "options": {"seeds": [0]}})


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Peer]:
    with running_peer() as running:
        monkeypatch.setenv("PALESTRA_SERVER", running.url)
        monkeypatch.setenv("PALESTRA_TOKEN", "plr_test")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "x.yaml").write_text(DOCUMENT)
        yield running


@pytest.fixture
def palestra(peer: Peer, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
