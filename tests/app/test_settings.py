import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from app.domain.secrets import generate_secret, hash_secret, is_well_formed
from app.logging import scrub, scrub_text
from app.settings import Settings, SettingsError, load_settings, mask_password


def test_arguments_override_variables_which_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text('port = 1\nhost = "localhost"\nlog_level = "debug"\n')
    loaded = load_settings(
        {"port": 3, "host": None},
        {"PALESTRA_PORT": "2", "PALESTRA_HOST": "::1", "PALESTRA_CONFIG": str(file)},
    )
    assert (loaded.port, loaded.host, loaded.log_level) == (3, "::1", "debug")


def test_variables_of_other_components_are_ignored() -> None:
    load_settings(
        {}, {"PALESTRA_TOKEN": "x", "PALESTRA_SERVER": "y", "PALESTRA_TEST_STACK": "z", "HOME": "/"}
    )
    with pytest.raises(SettingsError, match="did you mean PALESTRA_PORT"):
        load_settings({}, {"PALESTRA_PROT": "1"})


def test_the_error_of_a_wrong_value_does_not_contain_the_value() -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({"port": "hunter2"}, {})
    assert "port" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_settings_derive_values_from_valkey_addresses(tmp_path: Path) -> None:
    loaded = Settings(
        broker_url="valkey://u:p@h:1/0",
        data_dir=tmp_path,
        public_url="https://p.example.org/",
        host="::1",
        port=1,
    )  # type: ignore[arg-type]
    assert loaded.broker_url.get_secret_value() == "redis://u:p@h:1/0"
    assert "p@h" not in repr(loaded)
    assert loaded.sqlite_path == tmp_path / "palestra.db"
    assert loaded.base_url == "https://p.example.org"
    assert loaded.secure_cookies
    assert {"p.example.org", "localhost", "127.0.0.1", "[::1]"} <= loaded.host_names
    assert Settings(host="::1", port=1).base_url == "http://[::1]:1"
    assert Settings(database_url="postgresql://h/d").sqlite_path is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_loopback_addresses_are_recognised(host: str, loopback: bool) -> None:
    assert Settings(host=host).is_loopback is loopback


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("redis://:pw@h:1/0", "redis://:***@h:1/0"),
        ("postgresql://u:p%40@h/d", "postgresql://u:***@h/d"),
        ("sqlite:///x", "sqlite:///x"),
    ],
)
def test_passwords_in_urls_are_masked(url: str, masked: str) -> None:
    assert mask_password(url) == masked


def test_secrets_are_removed_from_log_lines() -> None:
    token = generate_secret("plr")
    for text in (
        f"sent {token} on",
        "redis://:pw-marked@host/0",
        f"Authorization: Bearer {token}",
        "x?password=pw-marked&y",
        "a\x1b[31m\r\nb",
    ):
        clean = scrub_text(text)
        assert token not in clean
        assert "pw-marked" not in clean
        assert "\x1b" not in clean
        assert "\r" not in clean
    event = scrub(
        None,
        "",
        {"event": "x", "password": "p", "headers": {"cookie": "c", "n": 1}, "items": [token]},
    )
    assert event == {
        "event": "x",
        "password": "***",
        "headers": {"cookie": "***", "n": 1},
        "items": ["plr_***"],
    }


@contextmanager
def capture_log_lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Yields a list that holds the lines logged in the block once it has ended."""
    from app.logging import configure_logging

    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    lines: list[dict[str, Any]] = []
    try:
        configure_logging("info", "json")
        yield lines
    finally:
        root.handlers[:], root.level = before
        structlog.reset_defaults()
    lines += [json.loads(line) for line in output.getvalue().splitlines()]


def test_secrets_are_removed_from_log_lines_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_log_lines(monkeypatch) as lines:
        logging.getLogger("kombu.connection").warning("cannot reach redis://:pw-marked@h:1/0")
        structlog.get_logger("t").info("a.b", url="redis://:pw-marked@h:1/0")
    assert [line["event"] for line in lines] == ["cannot reach redis://:***@h:1/0", "a.b"]
    assert "pw-marked" not in json.dumps(lines)


def test_only_the_cancelled_reset_of_a_connection_is_left_out_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = logging.getLogger("sqlalchemy.pool.impl.AsyncAdaptedQueuePool")
    with capture_log_lines(monkeypatch) as lines:
        for error in (asyncio.CancelledError(), OSError("disk")):
            pool.error("Exception during reset", exc_info=error)
        logging.getLogger("palestra.x").error("other", exc_info=asyncio.CancelledError())
    assert [line["event"] for line in lines] == ["Exception during reset", "other"]
    assert "disk" in lines[0]["exception"]


def test_secrets_have_a_checksum_and_are_unique() -> None:
    made = [generate_secret("plr") for _ in range(100)]
    assert len(set(made)) == 100
    assert all(is_well_formed(secret) and len(hash_secret(secret)) == 64 for secret in made)
    changed = made[0][:-1] + ("0" if made[0][-1] != "0" else "1")
    assert not is_well_formed(changed)
    assert not is_well_formed(made[0].replace("plr", "pla"))
    assert not is_well_formed("")
    assert not is_well_formed("plr_" + "é" * 49)


def test_the_workers_broker_is_a_setting_of_the_server() -> None:
    """Regression: the variable has the prefix of the worker's variables, and the server ignored
    it.
    """
    settings = load_settings(
        environ={
            "PALESTRA_WORKER_BROKER_URL": "valkey://worker:x@valkey/0",
            "PALESTRA_WORKER_COMPILE": "eager",
        }
    )
    assert settings.worker_broker_url is not None
    assert settings.worker_broker_url.get_secret_value() == "redis://worker:x@valkey/0"
