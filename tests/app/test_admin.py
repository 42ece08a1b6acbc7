import json
import os
import pwd
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from app.admin import main
from app.domain.secrets import hash_secret
from app.main import create_app
from app.services.access.device_keys import FILE, DeviceKeys
from app.settings import Settings
from app.startup import reserve_resources
from palestra.cli.embedded.datadir import DataDir
from tests.support.commands import run_command
from tests.support.process_stack import REPOSITORY, make_bare_environment


@pytest.fixture
def data(sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PALESTRA_DATA_DIR", str(sqlite_file.parent))
    return sqlite_file.parent


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(arguments) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_first_user_logs_in_by_link_and_is_created_once(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(capsys, "bootstrap")
    again = run(capsys, "bootstrap")
    assert first["setup_needed"] is True
    assert first["user_id"] == again["user_id"]
    assert first["code"] != again["code"]
    link = run(capsys, "login-link")
    assert str(link["url"]).endswith(f"/login#code={link['code']}")


def test_bootstrap_creates_the_named_project_and_admin(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: `--project` and `--user` were ignored if any project existed."""
    first = run(capsys, "bootstrap")
    bea = run(capsys, "bootstrap", "--project", "vision", "--user", "bea")
    assert (
        run(capsys, "bootstrap", "--project", "vision", "--user", "bea")["user_id"]
        == bea["user_id"]
    )
    assert run(capsys, "bootstrap", "--project", "vision")["user_id"] == first["user_id"], (
        "the server's first administrator"
    )
    assert bea["user_id"] != first["user_id"]
    assert bea["project_id"] != first["project_id"]
    both = run(capsys, "bootstrap", "--project", "vision", "--user", "admin")
    assert (both["project_id"], both["user_id"]) == (bea["project_id"], first["user_id"]), (
        "a known person joins as an admin"
    )
    again = run(capsys, "bootstrap", "--user", "cem")
    assert again["project_id"] == first["project_id"]
    assert main(["bootstrap", "--user", "two\nlines"]) == 1
    assert "--user must be one visible line" in capsys.readouterr().err


def test_bootstrap_refuses_to_promote_an_existing_user_to_admin(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "bootstrap", "--user", "bea")
    with sqlite3.connect(data / "palestra.db") as database:
        database.execute("UPDATE users SET is_admin = 0")
    assert main(["bootstrap", "--user", "bea"]) == 1
    assert "bea is a user without being an administrator" in capsys.readouterr().err


def test_a_login_link_names_the_port_of_the_running_server(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: the link named port 8080, whichever port the server of the data directory
    used.
    """
    with reserve_resources(Settings(data_dir=data, port=0)) as listener:
        running = run(capsys, "--data-dir", str(data), "login-link")
        assert running["url"] == f"http://127.0.0.1:{listener.port}/login#code={running['code']}"
    assert main(["login-link"]) == 0
    stopped = capsys.readouterr()
    assert json.loads(stopped.out)["url"].startswith("http://127.0.0.1:8080/")
    assert f"no server runs on {data}" in stopped.err


def test_the_command_finds_the_data_directory_in_a_parent_directory(
    migrated_sqlite: Path, tmp_path: Path
) -> None:
    """Regression: below the directory of `palestra up`, `palestra login-link` used an empty
    database and port 8080.
    """
    place = DataDir(tmp_path / "w" / ".palestra")
    place.prepare()
    shutil.copy(migrated_sqlite, place.root / "palestra.db")
    place.user_token.write_text("plr_x")
    below = tmp_path / "w" / "deep" / "er"
    below.mkdir(parents=True)
    with reserve_resources(Settings(data_dir=place.root, port=0)) as listener:
        place.write_state({"url": f"http://127.0.0.1:{listener.port}"})
        for arguments in ([], ["--user", "admin"], ["--enable", "--user=admin", "--json"]):
            done = run_command(("login-link", *arguments), make_bare_environment(), below)
            assert (done.exit_code, done.errors) == (0, "")
            assert json.loads(done.output)["url"].startswith(
                f"http://127.0.0.1:{listener.port}/login#code="
            )


def test_a_login_link_can_be_made_for_any_user(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: only the first admin could log in again without a password."""
    run(capsys, "bootstrap")
    bea = run(capsys, "bootstrap", "--user", "bea")
    link = run(capsys, "login-link", "--user", "bea")
    digest = hash_secret(link["code"])
    with sqlite3.connect(data / "palestra.db") as database:
        assert database.execute(
            "SELECT user_id FROM login_links WHERE code_hash = ?", (digest,)
        ).fetchall() == [(bea["user_id"],)]
    assert main(["login-link", "--user", "zoe"]) == 1
    assert "Nobody of the name zoe" in capsys.readouterr().err


def read_entries(data: Path) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Returns action, object, actor and data of the audit log's entries."""
    with sqlite3.connect(data / "palestra.db") as database:
        query = "SELECT action, object_id, actor, data FROM audit ORDER BY id"
        return [(*row, json.loads(text)) for *row, text in database.execute(query)]


def test_a_link_for_an_administrator_has_an_entry_in_the_audit_log(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry names the account of the shell, and who became root by sudo."""
    bea = run(capsys, "bootstrap", "--user", "bea")["user_id"]
    shell = pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.delenv("SUDO_USER", raising=False)
    run(capsys, "login-link", "--user", "bea")
    monkeypatch.setenv("SUDO_USER", "grace")
    run(capsys, "login-link")
    assert read_entries(data)[-2:] == [
        ("login.break_glass", bea, "daemon:console", {"shell_user": shell}),
        ("login.break_glass", bea, "daemon:console", {"shell_user": shell, "sudo_user": "grace"}),
    ]
    with sqlite3.connect(data / "palestra.db") as database:
        database.execute(
            "INSERT INTO users (id, name, created_at) VALUES ('usr_cem', 'cem', 0), "
            "('usr_gone', 'gone', 0)"
        )
        database.execute("UPDATE users SET disabled_at = 1 WHERE name = 'gone'")
    run(capsys, "login-link", "--user", "cem")
    assert read_entries(data)[-1][:3] == ("link.create", "usr_cem", "daemon:console")
    for arguments, sentence in (
        (["--user", "gone"], "The login of gone is disabled: log in as an administrator"),
        (["--user", "gone", "--enable"], "gone is no administrator of the server"),
        (["--user", "cem", "--enable"], "cem is no administrator of the server"),
        (["--user", "zoe", "--enable"], "Nobody of the name zoe"),
        (["--enable"], "--enable needs --user NAME"),
    ):
        assert main(["login-link", *arguments]) == 1
        assert sentence in capsys.readouterr().err


def test_a_disabled_administrator_is_enabled_from_the_shell_alone(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command needs `--enable`, and leaves two entries in the audit log."""
    bea = run(capsys, "bootstrap", "--user", "bea")["user_id"]
    with sqlite3.connect(data / "palestra.db") as database:
        database.execute("UPDATE users SET disabled_at = 1")
    before = read_entries(data)
    assert main(["login-link", "--user", "bea"]) == 1
    assert "--enable lets this administrator in again" in capsys.readouterr().err
    assert read_entries(data) == before
    link = run(capsys, "login-link", "--user", "bea", "--enable")
    assert [entry[:2] for entry in read_entries(data)[len(before) :]] == [
        ("user.enable", bea),
        ("login.break_glass", bea),
    ]
    with sqlite3.connect(data / "palestra.db") as database:
        assert database.execute("SELECT name, disabled_at FROM users").fetchall() == [("bea", None)]
        (used,) = database.execute(
            "SELECT used_at FROM login_links WHERE code_hash = ?", (hash_secret(link["code"]),)
        ).fetchone()
    assert used is None
    assert run(capsys, "audit-verify")["fault"] is None


def test_a_token_can_be_made_before_the_first_login(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = run(capsys, "token", "--name", "ci", "--scopes", "read,submit")
    assert str(token["secret"]).startswith("plr_")
    assert token["scopes"] == ["read", "submit"]
    assert token["expires_at"] is not None
    assert (
        run(capsys, "token", "--name", "w", "--scopes", "worker", "--days", "0")["expires_at"]
        is None
    )


def test_prepare_keeps_valid_token_files_and_replaces_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepare() -> dict[str, Any]:
        token = ["--token", "up", "read,submit", str(tmp_path / "user.token")]
        return run(
            capsys,
            "--data-dir",
            str(tmp_path / "new"),
            "prepare",
            *token,
            "--token",
            "w",
            "worker",
            str(tmp_path / "worker.token"),
        )

    first = prepare()
    (tmp_path / "user.token").write_text(first["tokens"]["up"])
    (tmp_path / "worker.token").write_text(first["tokens"]["up"])
    again = prepare()
    assert again["tokens"]["up"] is None, "the file holds a good one"
    assert first["tokens"]["w"].startswith("ple_"), "an enrolment token of the pool"
    assert again["tokens"]["w"].startswith("ple_"), "a good token with other scopes is no worker's"
    assert again["code"] != first["code"]
    (tmp_path / "worker.token").write_text(again["tokens"]["w"])
    assert prepare()["tokens"] == {"up": None, "w": None}
    (tmp_path / "user.token").write_bytes(b"\xff")
    assert prepare()["tokens"]["up"].startswith("plr_")


def test_the_keys_of_known_browsers_are_rotated(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = DeviceKeys(data)
    before = keys.current()
    assert run(capsys, "rotate-device-keys") == {"file": str(data / FILE)}
    assert keys.current()[1:] == before
    (data / FILE).write_text("no key\n")
    assert main(["rotate-device-keys"]) == 1
    problem = capsys.readouterr().err
    assert str(data / FILE) in problem
    assert f"delete {FILE}" in problem


def test_no_shipped_file_contains_a_password() -> None:
    assert not list(REPOSITORY.glob("app/**/*.env"))
    assert "password_hash=" not in (REPOSITORY / "app/services/access/logins.py").read_text()


def test_the_committed_openapi_document_is_current() -> None:
    committed = json.loads((REPOSITORY / "frontend/openapi.json").read_text())
    assert committed == json.loads(json.dumps(create_app(Settings()).openapi())), (
        "run: python -m app.openapi > frontend/openapi.json"
    )


def test_the_data_directory_is_private(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "new", port=0)
    with reserve_resources(settings) as listener:
        assert listener.port > 0
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_the_audit_log_is_verified_on_the_machine_of_its_database(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "bootstrap")
    first = run(capsys, "audit-verify")
    assert (first["fault"], first["entries"], first["last_id"]) == (None, 3, 3)
    noted = f"{first['last_id']}:{first['last_hash']}"
    run(capsys, "login-link")
    assert run(capsys, "audit-verify", "--noted", noted)["entries"] == 4
    with sqlite3.connect(data / "palestra.db") as database:
        assert database.execute("SELECT DISTINCT address FROM audit").fetchall() == [("console",)]
        database.execute("UPDATE audit SET actor = 'user:usr_other' WHERE id = 2")
    assert main(["audit-verify"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["fault"]["entry"] == 2
    assert "the audit log is broken: Entry 2 was changed" in told.err


@pytest.mark.parametrize("noted", ["", "1", "x:" + "0" * 64, "0:" + "0" * 64, "1:" + "g" * 64])
def test_a_noted_end_that_is_none_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], noted: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["audit-verify", "--noted", noted])
    assert ended.value.code == 2
    assert "as ID:HASH" in capsys.readouterr().err


def test_audit_verify_takes_the_data_directory_of_no_parent_directory_by_itself(
    migrated_sqlite: Path, tmp_path: Path
) -> None:
    place = DataDir(tmp_path / "w" / ".palestra")
    place.prepare()
    shutil.copy(migrated_sqlite, place.root / "palestra.db")
    place.user_token.write_text("plr_x")
    place.write_state({"url": "http://127.0.0.1:1"})
    below = tmp_path / "w" / "deep"
    below.mkdir()
    refused = run_command(("audit", "verify"), make_bare_environment(), below)
    assert (refused.exit_code, refused.output) == (2, "")
    assert f"--data-dir {place.root} verifies it" in refused.errors
    named = ("--data-dir", str(place.root))
    for directory, options in (
        (below.parent, ()),
        (below, named),
        (below, (*named, "--json", "--noted", "7:" + "a" * 64)),
    ):
        done = run_command(("audit", "verify", *options), make_bare_environment(), directory)
        answer = json.loads(done.output)
        assert answer["database"] == str(place.root / "palestra.db")
        if "--noted" in options:
            assert (done.exit_code, answer["fault"]["kind"]) == (1, "missing")
        else:
            assert (done.exit_code, done.errors, answer["fault"]) == (0, "", None)
