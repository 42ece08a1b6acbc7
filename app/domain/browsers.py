"""Names of browsers and programs, read from the `User-Agent` of a request. Pure."""

import re
from typing import Final

_BROWSERS: Final = (
    (re.compile(r"\bEdg(?:e|A|iOS)?/"), "Edge"),
    (re.compile(r"\b(?:OPR|OPT|Opera)/"), "Opera"),
    (re.compile(r"\bSamsungBrowser/"), "Samsung Internet"),
    (re.compile(r"\b(?:Firefox|FxiOS)/"), "Firefox"),
    (re.compile(r"\b(?:Chrome|CriOS|HeadlessChrome|Chromium)/"), "Chrome"),
    (re.compile(r"\bVersion/\S+ (?:Mobile/\S+ )?Safari/"), "Safari"),
)
_SYSTEMS: Final = (
    (re.compile(r"\bAndroid\b"), "Android"),
    (re.compile(r"\biPhone\b"), "iPhone"),
    (re.compile(r"\biPad\b"), "iPad"),
    (re.compile(r"\bWindows\b"), "Windows"),
    (re.compile(r"\bMac OS X\b|\bMacintosh\b"), "macOS"),
    (re.compile(r"\bCrOS\b"), "ChromeOS"),
    (re.compile(r"\bLinux\b|\bX11\b"), "Linux"),
)
_PROGRAM: Final = re.compile(r"([A-Za-z][A-Za-z0-9._-]{0,31})/")
_MAX_LENGTH: Final = 512
"""Leading characters of the header that are read."""


def describe_browser(user_agent: str | None) -> str | None:
    """Returns the browser and its system in words, for example `Firefox on Linux`.

    A program is named by its first product token. `None` if the header names nothing known. Any
    client can send any `User-Agent`, so the words are only displayed, and no check uses them.
    """
    text = (user_agent or "")[:_MAX_LENGTH]
    browser = next((name for pattern, name in _BROWSERS if pattern.search(text)), None)
    system = next((name for pattern, name in _SYSTEMS if pattern.search(text)), None)
    if browser is not None:
        return browser if system is None else f"{browser} on {system}"
    program = _PROGRAM.match(text)
    return None if program is None or program[1] == "Mozilla" else program[1]
