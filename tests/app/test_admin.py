import json
import stat
from pathlib import Path
from typing import Any

import pytest

from app.admin import main
from app.db.migrate import upgrade
from app.main import create_app
from app.settings import Settings
from tests.app.test_cli_corpus import REPOSITORY


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PALESTRA_DATA_DIR", str(tmp_path))
    upgrade(f"sqlite:///{tmp_path / 'palestra.db'}")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(arguments) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_first_person_comes_in_by_link_and_is_made_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys, "bootstrap")
    again = run(capsys, "bootstrap")
    assert first["setup_needed"] is True
    assert first["user_id"] == again["user_id"]
    assert first["code"] != again["code"]
    link = run(capsys, "login-link")
    assert str(link["url"]).endswith(f"/login#code={link['code']}")


def test_a_token_is_made_before_anyone_logged_in(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = run(capsys, "token", "--name", "ci", "--scopes", "read,submit")
    assert str(token["secret"]).startswith("plr_")
    assert token["scopes"] == ["read", "submit"]
    assert token["expires_at"] is not None
    assert run(capsys, "token", "--name", "w", "--scopes", "worker", "--days", "0")["expires_at"] is None


def test_one_command_prepares_everything_and_keeps_what_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def prepare() -> dict[str, Any]:
        token = ["--token", "up", "read,submit", str(tmp_path / "user.token")]
        return run(capsys, "--data-dir", str(tmp_path / "new"), "prepare", *token, "--token", "w", "worker", str(tmp_path / "worker.token"))

    first = prepare()
    (tmp_path / "user.token").write_text(first["tokens"]["up"])
    (tmp_path / "worker.token").write_text(first["tokens"]["up"])
    again = prepare()
    assert again["tokens"]["up"] is None, "the file holds a good one"
    assert again["tokens"]["w"].startswith("plr_"), "a good token with other scopes is no worker's"
    assert again["code"] != first["code"]
    (tmp_path / "user.token").write_bytes(b"\xff")
    assert prepare()["tokens"]["up"].startswith("plr_")


def test_no_shipped_file_holds_a_password() -> None:
    assert not list(REPOSITORY.glob("app/**/*.env"))
    assert "password_hash=" not in (REPOSITORY / "app/services/access.py").read_text()


def test_the_committed_document_is_the_current_one() -> None:
    committed = json.loads((REPOSITORY / "frontend/openapi.json").read_text())
    assert committed == json.loads(json.dumps(create_app(Settings()).openapi())), "run: python -m app.openapi > frontend/openapi.json"


def test_the_data_directory_is_private(tmp_path: Path) -> None:
    from app.startup import claimed

    settings = Settings(data_dir=tmp_path / "new", port=0)
    with claimed(settings) as listener:
        assert listener.port > 0
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
