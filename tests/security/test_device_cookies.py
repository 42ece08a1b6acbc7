"""The signed cookie of known browsers, and the file with its signing keys."""

import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.domain.device_cookies import LIFE_SECONDS, MAX_LENGTH, KnownBrowser, read, sign
from app.services.access.device_keys import FILE, DeviceKeys

KEY, OTHER = b"k" * 32, b"o" * 32
NOW = 1_800_000_000.0


def test_a_cookie_names_a_browser_and_its_user() -> None:
    cookies = [sign(KEY, "usr_a", NOW) for _ in range(100)]
    devices = [read([OTHER, KEY], cookie, NOW + 1) for cookie in cookies]
    assert {device.user_id for device in devices if device} == {"usr_a"}
    assert len({device.id for device in devices if device}) == 100
    assert all(len(cookie) < MAX_LENGTH for cookie in cookies)


def test_a_cookie_expires_after_180_days() -> None:
    cookie = sign(KEY, "usr_a", NOW)
    assert LIFE_SECONDS == 180 * 24 * 3_600
    assert isinstance(read([KEY], cookie, NOW + LIFE_SECONDS - 1), KnownBrowser)
    assert read([KEY], cookie, NOW + LIFE_SECONDS + 1) is None


def test_a_forged_cookie_is_rejected() -> None:
    cookie = sign(KEY, "usr_a", NOW)
    version, user, device, issued, signature = cookie.split(".")
    forged = [
        "",
        ".",
        "....",
        cookie[:-1],
        cookie + "0",
        cookie.replace("usr_a", "usr_b"),
        f"{version}.{user}.{device}.{int(issued) + 1}.{signature}",
        f"v2.{user}.{device}.{issued}.{signature}",
        f"{version}.{user}.{device}.{issued}.",
        f"{version}.{user}.{device}.{issued}",
        cookie.replace(signature, signature[:-1] + "\u00e9"),
        sign(OTHER, "usr_a", NOW),
        "v1." * 100_000,
    ]
    assert [read([KEY], text, NOW) for text in forged] == [None] * len(forged)
    assert read([], cookie, NOW) is None


def test_the_key_file_is_created_once_and_private(tmp_path: Path) -> None:
    found: list[tuple[bytes, ...]] = []
    processes = [DeviceKeys(tmp_path) for _ in range(8)]
    threads = [
        threading.Thread(target=lambda keys=keys: found.append(keys.current()))
        for keys in processes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_rotation_keeps_one_older_key_and_reaches_running_processes(tmp_path: Path) -> None:
    keys = DeviceKeys(tmp_path)
    first = keys.current()
    DeviceKeys(tmp_path).rotate()
    second = keys.current()
    assert second[1:] == first
    DeviceKeys(tmp_path).rotate()
    third = keys.current()
    assert third[1:] == second[:1]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / FILE).unlink()
    assert not set(keys.current()) & {*first, *second, *third}, "whoever deletes it starts anew"


@pytest.mark.parametrize("text", ["", "no key\n", "00\n", "\u00e9"])
def test_a_damaged_key_file_does_not_prevent_logins(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, "utf-8")
    keys = DeviceKeys(tmp_path)
    with capture_logs() as logs:
        assert keys.current() == keys.current() != ()
    assert logs[0]["event"] == "access.device_key_not_stored"
    assert FILE in logs[0]["error"]


def test_an_unwritable_directory_does_not_prevent_logins(tmp_path: Path) -> None:
    keys = DeviceKeys(tmp_path / "missing")
    with capture_logs() as logs:
        assert keys.current() == keys.current() != ()
    assert [log["event"] for log in logs] == ["access.device_key_not_stored"]


def test_a_key_file_that_others_can_read_gets_a_warning(tmp_path: Path) -> None:
    DeviceKeys(tmp_path).current()
    (tmp_path / FILE).chmod(0o644)
    with capture_logs() as logs:
        DeviceKeys(tmp_path).current()
    assert logs[0]["remedy"] == f"chmod 600 {FILE}"
