"""How the tests and benchmarks start Chromium."""

from typing import Final

CHROMIUM: Final = "/usr/bin/chromium"
QUIET: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
