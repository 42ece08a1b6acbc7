"""How the tests and benchmarks start Chromium."""

import shutil
from typing import Final

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_HEADLESS_SHELL: Final = "chromium-headless-shell"
"""Chromium without the parts that open windows, which takes a quarter less processor time."""
QUIET: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium(*, headless: bool = True) -> str:
    """Returns the path of an installed Chromium.

    Args:
        headless: Whether the headless shell does; otherwise the browser can open windows.

    Raises:
        FileNotFoundError: If there is none.
    """
    names = (_HEADLESS_SHELL, *_BROWSERS) if headless else _BROWSERS
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise FileNotFoundError(f"no Chromium: install one of {', '.join(names)}")
    return path
