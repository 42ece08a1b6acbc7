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
from app.settings import Settings, SettingsError, load_settings


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


def test_the_error_of_a_wrong_value_names_the_option_if_the_program_has_one() -> None:
    variables = {"PALESTRA_PORT": "x"}
    with pytest.raises(SettingsError, match=r"^port \(--port or PALESTRA_PORT\): "):
        load_settings({"port": None}, variables)
    with pytest.raises(SettingsError, match=r"^port \(PALESTRA_PORT\): "):
        load_settings({}, variables)


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


@pytest.mark.parametrize(
    ("variable", "text", "normal"),
    [
        ("PUBLIC_URL", "HTTPS://Lab.Example.org:443/", "https://lab.example.org"),
        ("PUBLIC_URL", "https://lab.example.org/palestra/", "https://lab.example.org/palestra"),
        ("PUBLIC_URL", " ", ""),
        ("HOST", " [::1] ", "::1"),
        ("HOST", "LocalHost", "localhost"),
        ("ALLOWED_HOSTS", "", ()),
        ("ALLOWED_HOSTS", " A.example , ,[::1],bücher.example,", (
            "a.example", "::1", "xn--bcher-kva.example",
        )),
        ("TRUSTED_PROXIES", "", ()),
        ("TRUSTED_PROXIES", " 10.0.0.0/8 ,,[::1]", ("10.0.0.0/8", "::1/128")),
        ("BUS_URL", "", None),
        ("WORKER_BROKER_URL", " ", None),
        ("DATABASE_URL", "", ""),
        ("ARTIFACTS_URL", "", ""),
    ],
)  # fmt: skip
def test_addresses_and_lists_are_normalised(variable: str, text: str, normal: object) -> None:
    loaded = getattr(load_settings({}, {f"PALESTRA_{variable}": text}), variable.lower())
    assert (loaded.get_secret_value() if hasattr(loaded, "get_secret_value") else loaded) == normal


@pytest.mark.parametrize(
    ("variable", "text", "remedy"),
    [
        ("PUBLIC_URL", "lab.example.org", "must begin with http:// or https://"),
        ("PUBLIC_URL", "https://lab.example.org/api/x", "choose another path, such as /palestra"),
        ("PUBLIC_URL", "https://lab.example.org/a//b", "between single slashes"),
        ("PUBLIC_URL", "https://u:hunter2@h", "must not hold a user or a password"),
        ("HOST", "", "must not be empty"),
        ("HOST", "127.0.0.1:8080", "without scheme, port or path"),
        ("PORT", "65536", "at most 65535"),
        ("PORT", "-1", "at least 0"),
        ("ALLOWED_HOSTS", "a,https://b", "'https://b' must be a host name"),
        ("ALLOWED_HOSTS", "b:80", "'b:80' must be a host name"),
        ("ALLOWED_HOSTS", "u:hunter2@b", "'b' must be a host name"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "write 10.0.0.0/8 for the network"),
        ("TRUSTED_PROXIES", "10.0.0.0/8;::1", "is no address"),
        ("BROKER_URL", "", "must not be empty"),
        ("BROKER_URL", "http://u:hunter2@h", "must begin with redis://"),
        ("WORKER_BROKER_URL", "redis://u:hunter2@h:0", "from 1 to 65535"),
        ("BUS_URL", "redis://u:hunter2@h/x", "number of a database"),
        ("DATABASE_URL", "mysql://u:hunter2@h/d", "must begin with sqlite:/// or postgresql://"),
        ("DATABASE_URL", "postgresql://u:hunter2@h:x/d", "from 1 to 65535"),
        ("ARTIFACTS_URL", "s3://u:hunter2@bucket", "must be a directory"),
    ],
)
def test_a_wrong_address_is_refused_with_its_setting_and_a_remedy(
    variable: str, text: str, remedy: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({}, {f"PALESTRA_{variable}": text})
    assert f"PALESTRA_{variable}" in str(refused.value)
    assert remedy in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_public_address_in_capitals_has_secure_cookies() -> None:
    """Regression: `HTTPS://` took `Secure`, `__Host-` and HSTS away."""
    assert Settings(public_url="HTTPS://h").secure_cookies
    assert not Settings(public_url="http://h").secure_cookies


def test_requests_may_name_hosts_as_browsers_write_them() -> None:
    names = Settings(
        public_url="https://[2001:DB8::1]:8443", host="FD00::1", allowed_hosts=("bücher.example",)
    ).host_names
    assert {"[2001:db8::1]", "[fd00::1]", "xn--bcher-kva.example", "[::1]"} <= names
