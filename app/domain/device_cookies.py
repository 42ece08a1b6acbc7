"""The signed cookie by which a browser is known to have logged in to an account before.

The cookie does not authenticate anybody: it only separates the person's own browser from those that
guess passwords (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"). Pure except for
the system's source of randomness.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LIFE_SECONDS: Final = 180 * 86_400
MAX_LENGTH: Final = 256
"""Greatest length of a cookie in characters."""
_VERSION: Final = "v1"


@dataclass(frozen=True, slots=True)
class KnownBrowser:
    """A browser that has logged in before."""

    id: str
    user_id: str
    """The user who logged in with it."""


def sign(key: bytes, user_id: str, now: float) -> str:
    """Returns a new cookie for a browser in which a user has just logged in.

    Args:
        key: The server's key for these cookies.
        user_id: ID of the user.
        now: Seconds since the Unix epoch.
    """
    payload = f"{_VERSION}.{user_id}.{secrets.token_hex(16)}.{int(now)}"
    return f"{payload}.{_signature(key, payload)}"


def read(keys: Sequence[bytes], cookie: str, now: float) -> KnownBrowser | None:
    """Returns the browser that a cookie stands for.

    Returns `None` for a cookie that is malformed, too old or signed with none of `keys`.
    """
    payload, _, signature = cookie.rpartition(".")
    parts = payload.split(".")
    if len(cookie) > MAX_LENGTH or not cookie.isascii() or len(parts) != 4 or parts[0] != _VERSION:
        return None
    if not any(hmac.compare_digest(_signature(key, payload), signature) for key in keys):
        return None
    _, user_id, browser_id, issued = parts
    return KnownBrowser(browser_id, user_id) if now - int(issued) <= LIFE_SECONDS else None


def _signature(key: bytes, payload: str) -> str:
    return hmac.digest(key, b"palestra device cookie " + payload.encode(), "sha256").hex()
