"""Names of browsers from `User-Agent` headers."""

import pytest

from app.domain.browsers import describe_browser

_MOZILLA = "Mozilla/5.0"
_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
_APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_IPHONE = f"{_MOZILLA} (iPhone; CPU iPhone OS 17_5 like Mac OS X) {_APPLE}"
_MACINTOSH = f"{_MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) {_APPLE}"
_PHONE = f"{_MOZILLA} (Linux; Android 14; SM-S921B) {_WEBKIT}"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (
            f"{_MOZILLA} (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "Firefox on Linux",
        ),
        (
            f"{_MOZILLA} (Windows NT 10.0; Win64; x64) {_WEBKIT} Chrome/126.0.0.0 Safari/537.36",
            "Chrome on Windows",
        ),
        (
            f"{_MOZILLA} (Windows NT 10.0) {_WEBKIT} Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0",
            "Edge on Windows",
        ),
        (
            f"{_MOZILLA} (X11; Linux x86_64) {_WEBKIT} HeadlessChrome/140.0.0.0 Safari/537.36",
            "Chrome on Linux",
        ),
        (f"{_MACINTOSH} Version/17.5 Safari/605.1.15", "Safari on macOS"),
        (f"{_IPHONE} Version/17.5 Mobile/15E148 Safari/604.1", "Safari on iPhone"),
        (f"{_IPHONE} CriOS/126.0 Mobile/15E148 Safari/604.1", "Chrome on iPhone"),
        (
            f"{_PHONE} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36",
            "Samsung Internet on Android",
        ),
        (
            f"{_MOZILLA} (X11; CrOS x86_64) {_WEBKIT} Chrome/126.0 Safari/537.36",
            "Chrome on ChromeOS",
        ),
        ("curl/8.5.0", "curl"),
        ("python-httpx/0.28.1", "python-httpx"),
        (f"{_MOZILLA} (compatible; Thing/1.0)", None),
        ("", None),
        (None, None),
        ("<script>alert(1)</script>", None),
        ("a" * 10_000 + "/1", None),
        ("\u202eevil/1", None),
    ],
)
def test_a_user_agent_is_named_in_words(user_agent: str | None, name: str | None) -> None:
    assert describe_browser(user_agent) == name


def test_a_name_fits_its_column() -> None:
    assert len(describe_browser("x" * 32 + "/1") or "") <= 64
